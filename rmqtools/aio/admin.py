"""Operating a cluster: topics, routes, offsets. Consumer groups are in :mod:`rmqtools.aio.admin_group`."""

from collections.abc import AsyncIterator, Mapping, Sequence

from rmqtools.aio.admin_group import GroupAdmin
from rmqtools.aio.admin_pin import PinAdmin
from rmqtools.aio.client import Client
from rmqtools.aio.lifecycle import Asynchronous
from rmqtools.config import ClientConfig
from rmqtools.engine.admin import AdminCore
from rmqtools.engine.admin_group import GroupAdminCore
from rmqtools.engine.client import ClientCore
from rmqtools.engine.group_view import GroupViewer
from rmqtools.engine.pin_store import PinStore
from rmqtools.engine.read_messages import read_messages
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.model.route import ClusterInfo, Perm, TopicRouteData


class Admin(GroupAdmin, PinAdmin, Asynchronous):
    """Asks and changes what operators do. Made from settings, or on a
    running :class:`Client`, which it leaves open.

    Every method raises ``RemotingError`` where nobody answers within ``request_timeout`` and
    ``BrokerError`` where the answer is no.
    """

    def __init__(self, config: ClientConfig | Client) -> None:
        self._owns_core = not isinstance(config, Client)
        self.core = config.core if isinstance(config, Client) else ClientCore(config)
        self._admin = AdminCore(self.core)
        self._groups = GroupAdminCore(self.core, self._admin)
        self._viewer = GroupViewer(self.core, self._admin, self._groups)
        self._pins = PinStore(self.core)

    async def start(self) -> None:
        """Make the methods usable. Nothing is sent before it is needed."""
        if self._owns_core:
            self.core.start()

    async def close(self) -> None:
        """Close the connections, unless they are another client's. A second call does nothing."""
        if self._owns_core:
            await self.core.close()

    async def fetch_cluster_info(self) -> ClusterInfo:
        """All brokers the name server knows, by name and by cluster."""
        return await self._admin.fetch_cluster_info()

    async def fetch_topic_list(self) -> list[str]:
        """The names of all topics, sorted; system topics included."""
        return await self._admin.fetch_topic_list()

    async def fetch_route(self, topic: str) -> TopicRouteData:
        """Where a topic is.

        Raises:
            TopicNotFoundError: nowhere.
        """
        return await self._admin.fetch_route(topic)

    async def fetch_broker_runtime_info(self, broker_addr: str) -> dict[str, str]:
        """A broker's own figures by name, as text (GET_BROKER_RUNTIME_INFO)."""
        return await self._admin.fetch_broker_runtime_info(broker_addr)

    async def update_broker_config(self, broker_addr: str, settings: Mapping[str, str]) -> None:
        """Change settings of a running broker; those it can change at run time apply at once."""
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
    ) -> None:
        """Create a topic, or change one that exists, and wait until the route shows it.

        Args:
            topic: its name.
            read_queue_nums: queues per broker that clients read.
            write_queue_nums: queues per broker that clients send to.
            perm: what clients may do.
            cluster_name: on the masters of this cluster; None: of all.
            broker_names: only on these brokers; None: on all.

        Raises:
            MessageRejectedError: a name that brokers refuse; nothing was sent.
            RemotingTimeoutError: created, but not in the route within ``request_timeout``.
        """
        await self._admin.create_topic(
            topic,
            read_queue_nums=read_queue_nums,
            write_queue_nums=write_queue_nums,
            perm=perm,
            cluster_name=cluster_name,
            broker_names=broker_names,
        )

    async def delete_topic(self, topic: str, *, cluster_name: str | None = None) -> None:
        """Delete a topic with all its messages, on brokers and name servers. An absent one is no error."""
        await self._admin.delete_topic(topic, cluster_name=cluster_name)

    async def fetch_subscribe_queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that can be read, sorted, by a route fetched now.

        Raises:
            TopicNotFoundError: there is no such topic.
            PermissionDeniedError: it may not be read.
        """
        return await self._admin.fetch_subscribe_queues(topic)

    async def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that can be sent to, in the order of round-robin, by a route fetched now.

        Raises:
            TopicNotFoundError: there is no such topic.
            PermissionDeniedError: it may not be written.
        """
        return await self._admin.fetch_publish_queues(topic)

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first queue offset that still has a message."""
        return await self._admin.min_offset(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """One more than the last queue offset that can be read; 0 also for a queue that does not exist.

        A broker acknowledges a message some milliseconds before its queue shows it: see
        :meth:`await_readable`.
        """
        return await self._admin.max_offset(queue)

    async def await_readable(self, max_offsets: Mapping[MessageQueue, int], *, timeout: float = 10.0) -> None:
        """Wait until queues show what brokers have acknowledged.

        Args:
            max_offsets: per queue, what :meth:`max_offset` must reach: the last acknowledged message's
                ``queue_offset`` plus one.
            timeout: seconds for all of them together.

        Raises:
            RemotingTimeoutError: a queue does not show it in time.
        """
        await self._admin.await_readable(max_offsets, timeout=timeout)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at or after a time (ms since 1970); the end if none."""
        return await self._admin.search_offset(queue, timestamp_ms)

    def read_messages(self, range_: QueueRange) -> AsyncIterator[list[MessageExt]]:
        """Read exactly the messages of a range, in order; see :meth:`rmqtools.aio.Client.read_blocks`.

        Yields:
            Up to 256 messages at a time, in the order of their offsets. Topics are as the servers know
            them: with their namespace.

        Raises:
            DataLossError: part of the range has expired or was never written; the text names the offsets.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
        """
        self.core.check_started()
        return read_messages(self.core, range_, max_messages=256, max_bytes=1024 * 1024)
