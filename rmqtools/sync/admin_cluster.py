"""Blocking face of :mod:`rmqtools.aio.admin_cluster`."""

from rmqtools import aio
from rmqtools.model.group import TopicStatsTable
from rmqtools.model.route import TopicConfig
from rmqtools.sync.loop import Bridge


class ClusterAdmin:
    """The methods about settings and statistics of brokers; :class:`rmqtools.sync.Admin` has them all."""

    _admin: aio.Admin
    _bridge: Bridge

    def fetch_topic_configs(self, topic: str) -> dict[str, TopicConfig]:
        """See :meth:`rmqtools.aio.Admin.fetch_topic_configs`."""
        return self._bridge.run(self._admin.fetch_topic_configs(topic))

    def fetch_topic_stats(self, topic: str) -> TopicStatsTable:
        """See :meth:`rmqtools.aio.Admin.fetch_topic_stats`."""
        return self._bridge.run(self._admin.fetch_topic_stats(topic))

    def fetch_broker_config(self, broker_addr: str) -> dict[str, str]:
        """See :meth:`rmqtools.aio.Admin.fetch_broker_config`."""
        return self._bridge.run(self._admin.fetch_broker_config(broker_addr))

    def fetch_group_list(self) -> list[str]:
        """See :meth:`rmqtools.aio.Admin.fetch_group_list`."""
        return self._bridge.run(self._admin.fetch_group_list())

    def fetch_topic_groups(self, topic: str) -> list[str]:
        """See :meth:`rmqtools.aio.Admin.fetch_topic_groups`."""
        return self._bridge.run(self._admin.fetch_topic_groups(topic))
