"""Blocking face of :mod:`rmqtools.aio.admin_group`."""

from typing import Any

from rmqtools import aio
from rmqtools.model.group import ConsumerConnection, ConsumeStats, MessageRequestMode
from rmqtools.model.group_view import GroupView
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import ConsumerRunningInfo
from rmqtools.sync.loop import Bridge


class GroupAdmin:
    """The methods about consumer groups; :class:`rmqtools.sync.Admin` has them all."""

    _admin: aio.Admin
    _bridge: Bridge

    def fetch_group(self, group: str) -> GroupView:
        """See :meth:`rmqtools.aio.Admin.fetch_group`."""
        return self._bridge.run(self._admin.fetch_group(group))

    def fetch_consumer_offsets(self, group: str, topic: str) -> dict[MessageQueue, int | None]:
        """See :meth:`rmqtools.aio.Admin.fetch_consumer_offsets`."""
        return self._bridge.run(self._admin.fetch_consumer_offsets(group, topic))

    def update_consumer_offset(self, group: str, queue: MessageQueue, offset: int) -> None:
        """See :meth:`rmqtools.aio.Admin.update_consumer_offset`."""
        self._bridge.run(self._admin.update_consumer_offset(group, queue, offset))

    def reset_offsets(self, group: str, topic: str, timestamp_ms: int) -> dict[MessageQueue, int]:
        """See :meth:`rmqtools.aio.Admin.reset_offsets`."""
        return self._bridge.run(self._admin.reset_offsets(group, topic, timestamp_ms))

    def fetch_consumer_connection(self, group: str) -> ConsumerConnection:
        """See :meth:`rmqtools.aio.Admin.fetch_consumer_connection`."""
        return self._bridge.run(self._admin.fetch_consumer_connection(group))

    def fetch_consumer_ids(self, group: str) -> list[str]:
        """See :meth:`rmqtools.aio.Admin.fetch_consumer_ids`."""
        return self._bridge.run(self._admin.fetch_consumer_ids(group))

    def fetch_consume_stats(self, group: str, topic: str | None = None) -> ConsumeStats:
        """See :meth:`rmqtools.aio.Admin.fetch_consume_stats`."""
        return self._bridge.run(self._admin.fetch_consume_stats(group, topic))

    def fetch_running_info(self, group: str, client_id: str) -> ConsumerRunningInfo:
        """See :meth:`rmqtools.aio.Admin.fetch_running_info`."""
        return self._bridge.run(self._admin.fetch_running_info(group, client_id))

    def create_group(self, group: str, **settings: Any) -> None:
        """See :meth:`rmqtools.aio.Admin.create_group`."""
        self._bridge.run(self._admin.create_group(group, **settings))

    def set_message_request_mode(
        self, topic: str, group: str, mode: MessageRequestMode, *, pop_share_queue_num: int = 0
    ) -> None:
        """See :meth:`rmqtools.aio.Admin.set_message_request_mode`."""
        self._bridge.run(
            self._admin.set_message_request_mode(topic, group, mode, pop_share_queue_num=pop_share_queue_num)
        )

    def delete_group(self, group: str, *, clean_offset: bool = False) -> None:
        """See :meth:`rmqtools.aio.Admin.delete_group`."""
        self._bridge.run(self._admin.delete_group(group, clean_offset=clean_offset))
