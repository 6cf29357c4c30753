"""Common part of all roles: connections, name servers, routes, heartbeats, a client id."""

import asyncio
import os
import socket
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config.client import ClientConfig
from rmqtools.config.text import parse_address
from rmqtools.engine.connection.background import Background, Closing
from rmqtools.engine.connection.broker_versions import BrokerVersions
from rmqtools.engine.connection.endpoint import Endpoint
from rmqtools.engine.connection.name_server import NameServerClient
from rmqtools.engine.connection.queue_types import QueueTypes
from rmqtools.engine.connection.refusals import HEARTBEAT, Refusals
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.engine.connection.routes import Routes
from rmqtools.engine.connection.transport import Connection
from rmqtools.errors import ClientStateError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.group import ConsumerData
from rmqtools.model.names import TOOLS_CONSUMER_GROUP, with_namespace
from rmqtools.observer import current_observer
from rmqtools.protocol.headers.group import HeartbeatRequestHeader, UnregisterClientRequestHeader
from rmqtools.protocol.wire.bodies import format_heartbeat
from rmqtools.protocol.wire.command import request

log = get_logger(__name__)

_LOOP_CHECK_INTERVAL = 0.5  # seconds between two measurements of the event loop's delay
_FIRST_HEARTBEAT_DELAY = 1.0  # seconds; upstream MQClientInstance.startScheduledTask
_MAPPED_BYTES = 16 * 1024 * 1024  # twice that is kept: more than a read of bodies of 4 MB frees at once


@dataclass(slots=True)
class Groups:
    """The groups of this client, for its heartbeats."""

    producers: set[str] = field(default_factory=set)
    consumers: dict[str, ConsumerData] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.producers or self.consumers)


class ClientCore:
    """A client's connections and tables, on the event loop it was started on."""

    def __init__(self, config: ClientConfig, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.config = config
        self.clock = clock
        self.observer = current_observer()
        self.client_ip = config.client_ip or local_address(config)
        self.client_id = client_id(self.client_ip, config.instance_name, pid=os.getpid(), nanos=clock.nanos())
        self.remoting = Remoting(config, clock=clock)
        self.versions = BrokerVersions(self.remoting)
        self.name_server = NameServerClient(
            self.remoting, first=clock.nanos(), timeout=config.request_timeout
        )
        self.routes = Routes(self.name_server, config.namespace)
        self.queue_types = QueueTypes(self.remoting, self.routes, config.namespace, clock)
        self.groups = Groups()
        self.refusals = Refusals()
        self.background = Background()
        self._state = "new"
        self._closing = Closing(
            f"client {self.client_id}",
            self.background.stop,
            self.queue_types.close,
            self.routes.close,
            self.remoting.close,
        )

    @property
    def endpoint(self) -> Endpoint:
        """Knowledge about the servers behind ``name_server``."""
        return self.remoting.endpoint

    @property
    def state(self) -> str:
        """``new``, ``started`` or ``closed``."""
        return self._state

    def wire_topic(self, topic: str) -> str:
        """Return the wire name of a topic: with this client's namespace."""
        return with_namespace(topic, self.config.namespace)

    @property
    def read_group(self) -> str:
        """Wire name of the group that range reads name: TOOLS_CONSUMER, in no namespace, by default."""
        given = self.config.read_group
        return TOOLS_CONSUMER_GROUP if given is None else with_namespace(given, self.config.namespace)

    def start(self) -> None:
        """Start the polling of routes and the heartbeats. Sends nothing itself."""
        if self._state != "new":
            raise ClientStateError(f"client {self.client_id} is {self._state}: make a new one")
        self._state = "started"
        keep_freed_memory()
        interval = self.config.poll_name_server_interval
        self.background.spawn_loop("route_poll", lambda: self.routes.poll_forever(interval))
        self.background.spawn_loop("heartbeat", self._heartbeat_forever)
        if self.config.name_server_url is not None:
            self.background.spawn_loop("name_server_list", self.remoting.name_servers.fetch_forever)
        if self.observer is not None:
            self.background.spawn_loop("loop_delay", self._measure_loop_forever)

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
        """True if the client was started and not closed."""
        return self._state == "started"

    @property
    def is_connected(self) -> bool:
        """True if the client is open and has a usable connection to a broker. Safe on any thread."""
        known = self.routes.tables.broker_addrs.copy()
        brokers = {addr for addrs in known.values() for addr in addrs.values()}
        connections = self.remoting.connections.items()
        return self.is_open and any(addr in brokers and each.is_usable for addr, each in connections)

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` until the client closes; an error that ends it early is logged."""
        self.background.spawn(name, work)

    async def send_heartbeats(self) -> None:
        """Send a heartbeat with this client's groups to all brokers."""
        if self.groups:
            await asyncio.gather(*(self.send_heartbeat(name, addr) for addr, name in self.brokers().items()))

    def brokers(self) -> dict[str, str]:
        """Address -> name of the brokers that need heartbeats: masters, and slaves if the client consumes."""
        if not self.groups.consumers:
            return {addr: name for name, addr in self.routes.masters().items()}
        known = self.routes.tables.broker_addrs
        return {addr: name for name, addrs in known.items() for addr in addrs.values()}

    async def send_heartbeat(self, broker_name: str, addr: str) -> Connection | None:
        """Send one heartbeat; return the connection that the broker now knows, None without an answer."""
        command = request(
            HeartbeatRequestHeader(),
            format_heartbeat(self.client_id, sorted(self.groups.producers), self.groups.consumers.values()),
        )
        try:
            connection = await self.remoting.connect(addr)
            await self.remoting.invoke_ok(addr, command)
        except RocketMQError as error:
            log.warning("heartbeat_failed", broker=broker_name, addr=addr, reason=str(error))
            self.refusals.note(HEARTBEAT, broker_name, error)
            return None
        self.refusals.accepted(HEARTBEAT, broker_name)
        return connection

    async def unregister_producer(self, group: str) -> None:
        """Tell the brokers that this client has left a producer group."""
        self.groups.producers.discard(group)
        await self._unregister(
            UnregisterClientRequestHeader(client_id=self.client_id, producer_group=group), self.brokers()
        )

    async def unregister_consumer(self, group: str) -> None:
        """Tell the brokers that this client has left a consumer group."""
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

    def refuse_calls(self) -> None:
        """Make :meth:`check_started` raise from now on. Running work continues until :meth:`close`."""
        self._state = "closed"

    async def close(self) -> None:
        """Stop the tasks and close all connections. Every call waits until that is done."""
        self.refuse_calls()
        await self._closing.wait()

    async def stop_tasks(self) -> None:
        """Stop the tasks of :meth:`spawn`; requests remain possible."""
        await self.background.stop()

    async def _heartbeat_forever(self) -> None:
        await asyncio.sleep(_FIRST_HEARTBEAT_DELAY)
        while True:
            await self.send_heartbeats()
            self.remoting.pool.close_idle()
            await asyncio.sleep(self.config.heartbeat_broker_interval)

    async def _measure_loop_forever(self) -> None:
        assert self.observer is not None
        while True:
            due = self.clock.monotonic() + _LOOP_CHECK_INTERVAL
            await asyncio.sleep(_LOOP_CHECK_INTERVAL)
            self.observer.loop_delay(max(0.0, self.clock.monotonic() - due))


def client_id(client_ip: str, instance_name: str | None, *, pid: int, nanos: int) -> str:
    """``ip@instance``; without an instance name ``ip@pid#nanos``, which is unique even among containers.

    Source of the rule: ClientConfig.buildMQClientId and changeInstanceNameToPID (Java client).
    """
    return f"{client_ip}@{instance_name or f'{pid}#{nanos}'}"


def local_address(config: ClientConfig) -> str:
    """Return the local address of connections to the first name server; sends nothing."""
    url = urlsplit(config.name_server_url or "")
    host, port = (url.hostname, 80) if url.hostname else parse_address(config.name_servers[0])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, port))
        except (
            OSError,
            TypeError,
            ValueError,
        ):  # no name that resolves: connecting to it will say so properly
            return "127.0.0.1"
        return str(probe.getsockname()[0])


@cache
def keep_freed_memory() -> None:
    """Make malloc keep up to 32 MiB free at the end of each heap, for later answers.

    glibc returns the free end of a heap to the system when it exceeds a threshold, and the next answers take
    it again page by page: up to a tenth of a read's time. By default the threshold adapts to twice the
    largest piece that was mapped and freed. A read frees a similar amount, some megabytes, so the effect
    varies by chance. Each thread has a heap. ``MALLOC_TRIM_THRESHOLD_`` in the environment fixes the
    threshold. With a C library other than glibc, this does nothing.
    Source of the rule: mallopt(3), M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, "dynamic".
    """
    bytes(_MAPPED_BYTES)  # mapped and unmapped without touching a page
