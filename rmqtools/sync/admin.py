"""Blocking face of :mod:`rmqtools.aio.admin`."""

from collections.abc import Iterator, Mapping, Sequence

from rmqtools import aio
from rmqtools.config import ClientConfig
from rmqtools.model.block import CorruptBody
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.model.route import ClusterInfo, Perm, TopicRouteData
from rmqtools.model.topic_type import TopicMessageType
from rmqtools.sync.admin_cluster import ClusterAdmin
from rmqtools.sync.admin_group import GroupAdmin
from rmqtools.sync.admin_message import MessageAdmin
from rmqtools.sync.admin_pin import PinAdmin
from rmqtools.sync.client import Client
from rmqtools.sync.lifecycle import Blocking

_NO_ATTRIBUTES: Mapping[str, str | None] = {}


class Admin(ClusterAdmin, GroupAdmin, MessageAdmin, PinAdmin, Blocking):
    """Blocking face of :class:`rmqtools.aio.Admin`; safe to share between threads."""

    def __init__(self, config: ClientConfig | Client) -> None:
        self._admin = aio.Admin(config.asynchronous if isinstance(config, Client) else config)
        super().__init__(self._admin)

    def fetch_cluster_info(self) -> ClusterInfo:
        """See :meth:`rmqtools.aio.Admin.fetch_cluster_info`."""
        return self._bridge.run(self._admin.fetch_cluster_info())

    def fetch_topic_list(self) -> list[str]:
        """See :meth:`rmqtools.aio.Admin.fetch_topic_list`."""
        return self._bridge.run(self._admin.fetch_topic_list())

    def fetch_route(self, topic: str) -> TopicRouteData:
        """See :meth:`rmqtools.aio.Admin.fetch_route`."""
        return self._bridge.run(self._admin.fetch_route(topic))

    def fetch_broker_runtime_info(self, broker_addr: str) -> dict[str, str]:
        """See :meth:`rmqtools.aio.Admin.fetch_broker_runtime_info`."""
        return self._bridge.run(self._admin.fetch_broker_runtime_info(broker_addr))

    def update_broker_config(self, broker_addr: str, settings: Mapping[str, str]) -> None:
        """See :meth:`rmqtools.aio.Admin.update_broker_config`."""
        self._bridge.run(self._admin.update_broker_config(broker_addr, settings))

    def create_topic(
        self,
        topic: str,
        *,
        read_queue_nums: int = 8,
        write_queue_nums: int = 8,
        perm: Perm = Perm.READ | Perm.WRITE,
        cluster_name: str | None = None,
        broker_names: Sequence[str] | None = None,
        message_type: TopicMessageType | str | None = None,
        attributes: Mapping[str, str | None] = _NO_ATTRIBUTES,
    ) -> None:
        """See :meth:`rmqtools.aio.Admin.create_topic`."""
        self._bridge.run(
            self._admin.create_topic(
                topic,
                read_queue_nums=read_queue_nums,
                write_queue_nums=write_queue_nums,
                perm=perm,
                cluster_name=cluster_name,
                broker_names=broker_names,
                message_type=message_type,
                attributes=attributes,
            )
        )

    def delete_topic(self, topic: str, *, cluster_name: str | None = None) -> None:
        """See :meth:`rmqtools.aio.Admin.delete_topic`."""
        self._bridge.run(self._admin.delete_topic(topic, cluster_name=cluster_name))

    def fetch_subscribe_queues(self, topic: str) -> list[MessageQueue]:
        """See :meth:`rmqtools.aio.Admin.fetch_subscribe_queues`."""
        return self._bridge.run(self._admin.fetch_subscribe_queues(topic))

    def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """See :meth:`rmqtools.aio.Admin.fetch_publish_queues`."""
        return self._bridge.run(self._admin.fetch_publish_queues(topic))

    def min_offset(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.Admin.min_offset`."""
        return self._bridge.run(self._admin.min_offset(queue))

    def max_offset(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.Admin.max_offset`."""
        return self._bridge.run(self._admin.max_offset(queue))

    def await_readable(self, max_offsets: Mapping[MessageQueue, int], *, timeout: float = 10.0) -> None:
        """See :meth:`rmqtools.aio.Admin.await_readable`."""
        self._bridge.run(self._admin.await_readable(max_offsets, timeout=timeout))

    def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """See :meth:`rmqtools.aio.Admin.search_offset`."""
        return self._bridge.run(self._admin.search_offset(queue, timestamp_ms))

    def read_messages(
        self, range_: QueueRange, *, corrupt_body: CorruptBody = "fail"
    ) -> Iterator[list[MessageExt]]:
        """See :meth:`rmqtools.aio.Admin.read_messages`."""
        return self._bridge.iterate(self._admin.read_messages(range_, corrupt_body=corrupt_body))
