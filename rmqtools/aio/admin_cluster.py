"""What brokers hold: topics, groups, settings; a part of :class:`rmqtools.aio.Admin`."""

from rmqtools.engine.admin.admin_cluster import ClusterAdminCore
from rmqtools.model.group import TopicStatsTable
from rmqtools.model.route import TopicConfig


class ClusterAdmin:
    """The methods about settings and statistics of brokers; :class:`rmqtools.aio.Admin` has them all."""

    _cluster: ClusterAdminCore

    async def fetch_topic_configs(self, topic: str) -> dict[str, TopicConfig]:
        """Return a topic's settings by broker name: queues, permission, message type and other attributes.

        Raises:
            TopicNotFoundError: no name server has a route of it, or no master has the topic.
        """
        return await self._cluster.fetch_topic_configs(topic)

    async def fetch_topic_stats(self, topic: str) -> TopicStatsTable:
        """Return first and last offset of each queue of a topic, and the time of its last message.

        Queues of brokers without a master are missing. ``topic_put_tps`` is the rate of all brokers together.

        Raises:
            TopicNotFoundError: no name server has a route of it, or no master has the topic.
        """
        return await self._cluster.fetch_topic_stats(topic)

    async def fetch_broker_config(self, broker_addr: str) -> dict[str, str]:
        """Return the settings of a running broker by name, as text (GET_BROKER_CONFIG)."""
        return await self._cluster.fetch_broker_config(broker_addr)

    async def fetch_group_list(self) -> list[str]:
        """Return the names of all groups that a master has settings of, sorted; RocketMQ's own included."""
        return await self._cluster.fetch_group_list()

    async def fetch_topic_groups(self, topic: str) -> list[str]:
        """Return the groups that have members subscribed to a topic, or offsets of it, sorted."""
        return await self._cluster.fetch_topic_groups(topic)
