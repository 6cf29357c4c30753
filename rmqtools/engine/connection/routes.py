"""The route table: routes are fetched on first use, and polled while the client lives.

``policy.route_update.RouteTables`` decides what has changed, ``policy.publish`` makes the lists of queues. An
unusable route raises ProtocolError before any table has changed; the poll logs it and continues with the next
topic.
"""

import asyncio
from collections.abc import Callable

from rmqtools.engine.connection.name_server import NameServerClient
from rmqtools.engine.connection.single_flight import SharedWork
from rmqtools.errors import PermissionDeniedError, RemotingConnectError, RocketMQError, TopicNotFoundError
from rmqtools.log import get_logger
from rmqtools.model.names import with_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import TopicRouteData
from rmqtools.policy.broker_address import FoundBroker, find_in_admin, find_in_publish, find_in_subscribe
from rmqtools.policy.publish import TopicPublishInfo, is_static
from rmqtools.policy.route_update import DEFAULT_TOPIC, RouteTables, as_default_route

log = get_logger(__name__)

_FIRST_POLL_DELAY = 0.010  # seconds; upstream MQClientInstance.startScheduledTask


class Routes:
    """The routes of topics, and addresses of brokers. Concurrent fetches of one topic share a request."""

    def __init__(self, name_server: NameServerClient, namespace: str | None = None) -> None:
        self.tables = RouteTables()
        self._namespace = namespace
        self._name_server = name_server
        self._fetching = SharedWork[bool]()
        self._on_change: list[Callable[[str], None]] = []

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call ``callback(topic)`` on the loop after a topic's route has changed."""
        self._on_change.append(callback)

    def known(self, topic: str) -> TopicPublishInfo | None:
        """Return the result of :meth:`publish_info` if no request is needed for it; else None."""
        info = self.tables.publish.get(topic)
        return info if info is not None and info.ok else None

    async def publish_info(
        self, topic: str, *, default_topic_queue_nums: int | None = None
    ) -> TopicPublishInfo:
        """Return the queues to send to; at least one.

        Args:
            topic: any topic.
            default_topic_queue_nums: for a topic without a route, use the default topic's with at most this
                many queues, because brokers may create topics on first use; None: do not.

        Raises:
            TopicNotFoundError: no route.
            PermissionDeniedError: the route forbids writing.
            RemotingConnectError: the route names no master of a writable queue.
        """
        if self.known(topic) is None:
            await self._refresh_or_default(topic, default_topic_queue_nums)
        info = self.tables.publish[topic]
        if not info.ok:
            raise _no_queue_error(topic, info.route)
        return info

    async def subscribe_queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues to read from, sorted; at least one.

        Raises:
            TopicNotFoundError: no route.
            PermissionDeniedError: the route forbids reading.
        """
        if topic not in self.tables.routes:
            await self.refresh(topic)
        queues = list(self.tables.subscribe[topic])
        if not queues:
            perms = {data.broker_name: data.perm for data in self.tables.routes[topic].queue_datas}
            raise PermissionDeniedError(
                f"topic {topic!r} may not be read: perm by broker is {perms}, want bit 4"
            )
        return queues

    async def refresh(self, topic: str, *, default_topic_queue_nums: int | None = None) -> bool:
        """Fetch a topic's route now; return whether it has changed.

        Raises:
            TopicNotFoundError: the topic has no route.
            RemotingError: no name server answered.
            ClientStateError: the client is closed, or was closed during the request.
        """
        key = topic, default_topic_queue_nums  # the default route is another look-up
        return await self._fetching.run(key, lambda: self._fetch(*key))

    async def close(self) -> None:
        """End running fetches, before their connections are closed."""
        await self._fetching.close()

    async def poll_forever(self, interval: float) -> None:
        """Refresh every known topic, soon after start and then every ``interval`` seconds."""
        await asyncio.sleep(_FIRST_POLL_DELAY)
        while True:
            for topic in list(self.tables.routes):
                try:
                    await self.refresh(topic)
                except RocketMQError as error:
                    log.warning("route_refresh_failed", topic=topic, reason=str(error))
            self.tables.forget_offline_brokers()
            await asyncio.sleep(interval)

    def master_addr(self, broker_name: str) -> str:
        """Return the address of a broker set's master.

        Raises:
            RemotingConnectError: the route names no master.
        """
        addr = find_in_publish(self.tables.broker_addrs, broker_name)
        if addr is None:
            raise RemotingConnectError(f"broker {broker_name!r} has no master in the route")
        return addr

    def reading_addr(self, queue: MessageQueue, broker_id: int = 0) -> FoundBroker:
        """Return the address to read a queue from: the requested broker's, else any of its set."""
        found = find_in_subscribe(self.tables.broker_addrs, self.broker_name(queue), broker_id)
        if found is None:
            raise RemotingConnectError(f"no broker of {queue} is in the route")
        return found

    def admin_addr(self, broker_name: str) -> str:
        """Return the address of any live broker of a set, the master first."""
        found = find_in_admin(self.tables.broker_addrs, broker_name)
        if found is None:
            raise RemotingConnectError(f"broker {broker_name!r} is not in the route")
        return found.broker_addr

    def broker_name(self, queue: MessageQueue) -> str:
        """Return the broker set that serves a queue; for a static topic's logic queue, its current owner."""
        if is_static(queue):
            return self.tables.endpoints.get(queue, queue.broker_name)
        return queue.broker_name

    def masters(self) -> dict[str, str]:
        """Master addresses by broker name, of all known routes."""
        return {name: addrs[0] for name, addrs in self.tables.broker_addrs.items() if 0 in addrs}

    async def _refresh_or_default(self, topic: str, default_topic_queue_nums: int | None) -> None:
        try:
            await self.refresh(topic)
        except TopicNotFoundError as missing:
            if self.known(topic) is not None:  # another send has found the default route meanwhile
                return
            if default_topic_queue_nums is None or topic in self.tables.routes:
                raise
            try:
                await self.refresh(topic, default_topic_queue_nums=default_topic_queue_nums)
            except TopicNotFoundError as error:
                raise TopicNotFoundError(
                    f"{missing}, and no broker creates topics on first use: create it first"
                ) from error

    async def _fetch(self, topic: str, default_topic_queue_nums: int | None) -> bool:
        if default_topic_queue_nums is None:
            route = await self._name_server.fetch_route(with_namespace(topic, self._namespace))
        else:
            default = await self._name_server.fetch_route(DEFAULT_TOPIC)
            if topic in self.tables.routes:  # it was created meanwhile
                return False
            route = as_default_route(default, default_topic_queue_nums)
        changed = self.tables.update(topic, route, publish_needed=self.tables.needs_publish_update(topic))
        if changed:
            log.info(
                "route_updated", topic=topic, brokers=sorted(data.broker_name for data in route.broker_datas)
            )
            for callback in self._on_change:
                callback(topic)
        return changed


def _no_queue_error(topic: str, route: TopicRouteData) -> RocketMQError:
    if alone := sorted(data.broker_name for data in route.queue_datas if data.is_writable):
        return RemotingConnectError(
            f"topic {topic!r} has no queue on a broker whose master is in the route, and slaves take no "
            f"messages: start the master of {' or '.join(alone)}, or wait until it has registered"
        )
    perms = {data.broker_name: data.perm for data in route.queue_datas}
    return PermissionDeniedError(f"topic {topic!r} may not be written: perm by broker is {perms}, want bit 2")
