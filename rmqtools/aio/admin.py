"""Operating a cluster: topics, routes, offsets. Consumer groups are in :mod:`rmqtools.aio.admin_group`."""

from collections.abc import AsyncIterator, Mapping, Sequence

from rmqtools.aio.admin_cluster import ClusterAdmin
from rmqtools.aio.admin_group import GroupAdmin
from rmqtools.aio.admin_message import MessageAdmin
from rmqtools.aio.admin_pin import PinAdmin
from rmqtools.aio.client import Client
from rmqtools.aio.lifecycle import Asynchronous
from rmqtools.config import ClientConfig
from rmqtools.config.text import check_choice
from rmqtools.engine.admin.admin import AdminCore
from rmqtools.engine.admin.admin_cluster import ClusterAdminCore
from rmqtools.engine.admin.admin_group import GroupAdminCore
from rmqtools.engine.admin.admin_message import MessageAdminCore
from rmqtools.engine.admin.group_view import GroupViewer
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.group.pin_store import PinStore
from rmqtools.engine.reading.read_messages import read_messages
from rmqtools.model.block import CORRUPT_BODY_CHOICES, CorruptBody
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.model.route import ClusterInfo, Perm, TopicRouteData
from rmqtools.model.topic_type import TopicMessageType

_NO_ATTRIBUTES: Mapping[str, str | None] = {}


class Admin(ClusterAdmin, GroupAdmin, MessageAdmin, PinAdmin, Asynchronous):
    """Queries and changes topics, groups and brokers. Made from settings, or on a
    running :class:`Client`, which stays open when this is closed.

    Every method raises ``RemotingError`` if no answer comes within ``request_timeout`` and
    ``BrokerError`` if a server refuses.
    """

    def __init__(self, config: ClientConfig | Client) -> None:
        self._owns_core = not isinstance(config, Client)
        self.core = config.core if isinstance(config, Client) else ClientCore(config)
        self._admin = AdminCore(self.core)
        self._groups = GroupAdminCore(self.core, self._admin)
        self._cluster = ClusterAdminCore(self.core, self._admin)
        self._messages = MessageAdminCore(self.core, self._admin, self._groups, self._cluster)
        self._viewer = GroupViewer(self.core, self._admin, self._groups)
        self._pins = PinStore(self.core)

    async def start(self) -> None:
        """Make the methods usable. Connections are made when needed."""
        if self._owns_core:
            self.core.start()

    async def close(self) -> None:
        """Close the connections, unless they are another client's. Every call waits until that is done."""
        if self._owns_core:
            await self.core.close()

    async def fetch_cluster_info(self) -> ClusterInfo:
        """Return all brokers that the name server knows, by name and by cluster."""
        return await self._admin.fetch_cluster_info()

    async def fetch_topic_list(self) -> list[str]:
        """Return the names of all topics, sorted; system topics included."""
        return await self._admin.fetch_topic_list()

    async def fetch_route(self, topic: str) -> TopicRouteData:
        """Return a topic's route: its brokers and how many queues each of them has.

        Raises:
            TopicNotFoundError: no name server has a route of it.
        """
        return await self._admin.fetch_route(topic)

    async def fetch_broker_runtime_info(self, broker_addr: str) -> dict[str, str]:
        """Return a broker's statistics by name, as text (GET_BROKER_RUNTIME_INFO)."""
        return await self._admin.fetch_broker_runtime_info(broker_addr)

    async def update_broker_config(self, broker_addr: str, settings: Mapping[str, str]) -> None:
        """Change settings of a running broker. Not all take effect before its next start."""
        await self._admin.update_broker_config(broker_addr, dict(settings))

    async def create_topic(
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
        """Create a topic, or change one that exists, and wait until the route shows it.

        Args:
            topic: its name.
            read_queue_nums: queues per broker that clients read.
            write_queue_nums: queues per broker that clients send to.
            perm: the operations that clients may use.
            cluster_name: only on the masters of this cluster; None: of all clusters.
            broker_names: only on these brokers; None: on all.
            message_type: which messages a 5.x proxy lets into the topic; None: as it was, NORMAL for a
                new one. Brokers reached directly take all messages.
            attributes: more attributes of a 5.x topic by name, e.g. ``{"cleanup.policy": "COMPACTION"}``;
                None as a value removes one. Brokers refuse names they do not know.

        Raises:
            MessageRejectedError: the name is not valid; nothing was sent.
            ConfigError: no such type, or a text that attributes cannot hold; nothing was sent.
            RemotingTimeoutError: created, but not in the route after ``request_timeout``.
        """
        await self._admin.create_topic(
            topic,
            read_queue_nums=read_queue_nums,
            write_queue_nums=write_queue_nums,
            perm=perm,
            cluster_name=cluster_name,
            broker_names=broker_names,
            message_type=message_type,
            attributes=attributes,
        )

    async def delete_topic(self, topic: str, *, cluster_name: str | None = None) -> None:
        """Delete a topic with all its messages, on brokers and name servers. No error if it is absent."""
        await self._admin.delete_topic(topic, cluster_name=cluster_name)

    async def fetch_subscribe_queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be read, sorted. Fetches the route again.

        Raises:
            TopicNotFoundError: there is no such topic.
            PermissionDeniedError: the topic may not be read.
        """
        return await self._admin.fetch_subscribe_queues(topic)

    async def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be sent to, in round-robin order. Fetches the route again.

        Raises:
            TopicNotFoundError: there is no such topic.
            PermissionDeniedError: the topic may not be written.
        """
        return await self._admin.fetch_publish_queues(topic)

    async def min_offset(self, queue: MessageQueue) -> int:
        """Return the first queue offset that still has a message."""
        return await self._admin.min_offset(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return one more than the last queue offset that can be read; 0 if there is no such queue.

        A broker acknowledges a message some milliseconds before its queue shows it: see
        :meth:`await_readable`.
        """
        return await self._admin.max_offset(queue)

    async def await_readable(self, max_offsets: Mapping[MessageQueue, int], *, timeout: float = 10.0) -> None:
        """Wait until queues show the acknowledged messages.

        Args:
            max_offsets: per queue, what :meth:`max_offset` must reach: the last acknowledged message's
                ``queue_offset`` plus one.
            timeout: seconds for all of them together.

        Raises:
            RemotingTimeoutError: a queue did not show it in time.
        """
        await self._admin.await_readable(max_offsets, timeout=timeout)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Return the offset of the first message stored at or after a time (ms since 1970); else the end."""
        return await self._admin.search_offset(queue, timestamp_ms)

    def read_messages(
        self, range_: QueueRange, *, corrupt_body: CorruptBody = "fail"
    ) -> AsyncIterator[list[MessageExt]]:
        """Read exactly the messages of a range, in order; see :meth:`rmqtools.aio.Client.read_messages`.

        Yields:
            Up to 256 messages at a time, in the order of their offsets. Their topics include the
            namespace, as on the server.

        Raises:
            DataLossError: part of the range has expired or was never written; the text names the offsets.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
            CorruptBodyError: a body that cannot be read; the text names queue and queue offset.
        """
        self.core.check_started()
        check_choice("corrupt_body", corrupt_body, CORRUPT_BODY_CHOICES)
        return read_messages(
            self.core, range_, max_messages=256, max_bytes=1024 * 1024, corrupt_body=corrupt_body
        )
