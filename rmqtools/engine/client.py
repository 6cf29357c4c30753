"""What every role shares: connections, name servers, routes, heartbeats, a client id."""

import asyncio
import os
import socket
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config import ClientConfig, parse_address
from rmqtools.engine.memory import keep_freed_memory
from rmqtools.engine.name_server import NameServerClient
from rmqtools.engine.remoting import Remoting
from rmqtools.engine.routes import Routes
from rmqtools.engine.transport import Connection
from rmqtools.errors import ClientStateError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.group import ConsumerData
from rmqtools.model.names import with_namespace
from rmqtools.protocol.bodies import format_heartbeat
from rmqtools.protocol.command import request
from rmqtools.protocol.headers import HeartbeatRequestHeader, UnregisterClientRequestHeader

log = get_logger(__name__)

_FIRST_HEARTBEAT_DELAY = 1.0  # seconds; upstream MQClientInstance.startScheduledTask


@dataclass(slots=True)
class Groups:
    """The groups this client belongs to, as its heartbeats tell."""

    producers: set[str] = field(default_factory=set)
    consumers: dict[str, ConsumerData] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.producers or self.consumers)


class ClientCore:
    """A client's connections and tables, on the event loop it was started on."""

    def __init__(self, config: ClientConfig, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.config = config
        self.clock = clock
        self.client_ip = config.client_ip or local_address(config.name_servers[0])
        self.client_id = client_id(self.client_ip, config.instance_name, pid=os.getpid(), nanos=clock.nanos())
        self.remoting = Remoting(config, clock=clock)
        self.name_server = NameServerClient(
            self.remoting, config.name_servers, first=clock.nanos(), timeout=config.request_timeout
        )
        self.routes = Routes(self.name_server, config.namespace)
        self.groups = Groups()
        self._tasks: set[asyncio.Task[None]] = set()
        self._state = "new"

    def wire_topic(self, topic: str) -> str:
        """A topic's name as the servers know it: in this client's namespace."""
        return with_namespace(topic, self.config.namespace)

    def start(self) -> None:
        """Begin to poll routes and to send heartbeats. Sends nothing itself."""
        if self._state != "new":
            raise ClientStateError(f"client {self.client_id} is {self._state}: make a new one")
        self._state = "started"
        keep_freed_memory()
        self.spawn("route_poll", self.routes.poll_forever(self.config.poll_name_server_interval))
        self.spawn("heartbeat", self._heartbeat_forever())

    def check_started(self) -> None:
        """Raise unless the client may be used.

        Raises:
            ClientStateError: not started, or closed.
        """
        if self._state != "started":
            remedy = "call start() or use it in a with block" if self._state == "new" else "make a new one"
            raise ClientStateError(f"client {self.client_id} is {self._state}: {remedy}")

    @property
    def is_open(self) -> bool:
        """Whether the client was started and not closed."""
        return self._state == "started"

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` until the client closes; an error that ends it early is logged."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def send_heartbeats(self) -> None:
        """Tell the brokers which groups this client belongs to."""
        if self.groups:
            await asyncio.gather(*(self.send_heartbeat(name, addr) for addr, name in self.brokers().items()))

    def brokers(self) -> dict[str, str]:
        """Address -> name of those that must know this client: masters; slaves too, which consumers read."""
        if not self.groups.consumers:
            return {addr: name for name, addr in self.routes.masters().items()}
        known = self.routes.tables.broker_addrs
        return {addr: name for name, addrs in known.items() for addr in addrs.values()}

    async def send_heartbeat(self, broker_name: str, addr: str) -> Connection | None:
        """Tell one broker; the connection on which it now knows this client, None if it did not answer."""
        command = request(
            HeartbeatRequestHeader(),
            format_heartbeat(self.client_id, sorted(self.groups.producers), self.groups.consumers.values()),
        )
        try:
            connection = await self.remoting.connect(addr)
            await self.remoting.invoke_ok(addr, command)
        except RocketMQError as error:
            log.warning("heartbeat_failed", broker=broker_name, addr=addr, reason=str(error))
            return None
        return connection

    async def unregister_producer(self, group: str) -> None:
        """Tell the brokers that a producer group has lost this client."""
        self.groups.producers.discard(group)
        await self._unregister(
            UnregisterClientRequestHeader(client_id=self.client_id, producer_group=group), self.brokers()
        )

    async def unregister_consumer(self, group: str) -> None:
        """Tell the brokers that a consumer group has lost this client."""
        brokers = self.brokers()
        self.groups.consumers.pop(group, None)
        await self._unregister(
            UnregisterClientRequestHeader(client_id=self.client_id, consumer_group=group), brokers
        )

    async def _unregister(self, header: UnregisterClientRequestHeader, brokers: Mapping[str, str]) -> None:
        async def unregister(broker_name: str, addr: str) -> None:
            try:
                await self.remoting.invoke_ok(addr, request(header))
            except RocketMQError as error:
                log.warning("unregister_failed", broker=broker_name, addr=addr, reason=str(error))

        await asyncio.gather(*(unregister(name, addr) for addr, name in brokers.items()))

    async def close(self) -> None:
        """Stop the tasks and close all connections. A second call does nothing."""
        self._state = "closed"
        await self.stop_tasks()
        await self.routes.close()
        await self.remoting.close()

    async def stop_tasks(self) -> None:
        """Stop what :meth:`spawn` started; requests can still be made."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _heartbeat_forever(self) -> None:
        await asyncio.sleep(_FIRST_HEARTBEAT_DELAY)
        while True:
            await self.send_heartbeats()
            await asyncio.sleep(self.config.heartbeat_broker_interval)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background_task_failed", task=task.get_name(), reason=repr(error), exc_info=error)


def client_id(client_ip: str, instance_name: str | None, *, pid: int, nanos: int) -> str:
    """``ip@instance``; without an instance name ``ip@pid#nanos``, unique among containers too.

    Source of the rule: ClientConfig.buildMQClientId and changeInstanceNameToPID (Java client).
    """
    return f"{client_ip}@{instance_name or f'{pid}#{nanos}'}"


def local_address(name_server: str) -> str:
    """The address this machine would reach the name server from; nothing is sent."""
    host, port = parse_address(name_server)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, port))
        except OSError:  # a name that does not resolve: the connection attempt will say so properly
            return "127.0.0.1"
        return str(probe.getsockname()[0])
