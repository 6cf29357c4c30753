"""A name server and brokers in this process, for tests: real sockets on loopback, no Java, quick to start."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from rmqtools.errors import ClientStateError, ConfigError, TopicNotFoundError
from rmqtools.model.group_config import SubscriptionGroupConfig
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import Perm
from rmqtools.model.running_info import ConsumerRunningInfo
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.sync.greenlets import are_threads_greenlets, new_cooperative_loop, run_forever
from rmqtools.testing.fake.broker import Broker
from rmqtools.testing.fake.faults import Fault, FaultAnswer, Reaction
from rmqtools.testing.fake.messages import stored_message
from rmqtools.testing.fake.servers import Servers
from rmqtools.testing.fake.state import Settings
from rmqtools.testing.fake.timers import Timers
from rmqtools.testing.fake.topics import TopicConfig

T = TypeVar("T")
THREAD_NAME = "fake-rocketmq"  # of the thread of a cluster in a ``with`` block
_SECONDS = 30.0  # every call of a fake cluster is faster


class FakeCluster:
    """A cluster for tests.

        with FakeCluster(brokers=("broker-a", "broker-b")) as cluster:
            cluster.create_topic("orders", queues=4)
            with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
                producer.send(Message("orders", b"body"))
            assert [message.body for message in cluster.messages("orders")] == [b"body"]

    In a ``with`` block it runs on its own daemon thread. In an ``async with`` block it runs on the caller's
    loop; use :mod:`rmqtools.aio` there, because a blocking client would stop the loop. Its methods may be
    called from any thread, and still return the last state after the block.

    Args:
        brokers: the names of the brokers, all masters.
        slaves: number of slaves per broker, named ``broker-a/1`` and so on; they have their master's
            messages, and take no sends.
        name_servers: number of name servers; settings written to one are not copied to the others.
        cluster: the name of the cluster.
        auto_create_topics: whether a message to an unknown topic creates it, as on a broker by default.
        delay_scale: factor for the delays of retries and delay levels; 0: no delay.
        lock_seconds: time after which a queue's lock expires without renewal.
        max_bytes: size of a broker's store; when it is full, the broker refuses messages.
    """

    def __init__(
        self,
        brokers: Sequence[str] = ("broker-a",),
        *,
        slaves: int = 0,
        name_servers: int = 1,
        cluster: str = "DefaultCluster",
        auto_create_topics: bool = True,
        delay_scale: float = 0.0,
        lock_seconds: float = 60.0,
        max_bytes: int = 256 * 1024 * 1024,
    ) -> None:
        if isinstance(brokers, str):
            raise ConfigError(f"brokers={brokers!r}: want a list of names, as in [{brokers!r}]")
        settings = Settings(
            auto_create_topics=auto_create_topics,
            delay_scale=delay_scale,
            lock_seconds=lock_seconds,
            max_bytes=max_bytes,
        )
        self._timers = Timers()
        self._first = brokers[0]
        self._brokers = {name: Broker(name, cluster, settings, self._timers) for name in brokers}
        self._servers = Servers(self._brokers, self._timers, slaves=slaves, name_servers=name_servers)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: LoopThread | None = None

    @property
    def name_server(self) -> str:
        """Value of the clients' setting ``name_server``."""
        return self._servers.name_server

    def addr(self, name: str = "broker-a") -> str:
        """Return the address of a server: a broker, ``broker-a/1`` (its first slave), or a name server."""
        return self._servers.addr(name)

    def create_topic(
        self,
        topic: str,
        *,
        queues: int = 4,
        perm: int = Perm.READ | Perm.WRITE,
        broker_names: Sequence[str] | None = None,
    ) -> None:
        """Create a topic, or change it, on some brokers or on all."""
        config = TopicConfig(queues, queues, int(perm))

        def create() -> None:
            for name in broker_names or self._brokers:
                self._brokers[name].state.topics.put(topic, config)

        self._call(create)

    def create_group(self, group: str, **settings: object) -> None:
        """Set a group's settings on all brokers, e.g. ``retry_max_times=2`` (SubscriptionGroupConfig)."""
        config = SubscriptionGroupConfig(group_name=group, **settings)  # type: ignore[arg-type]

        def create() -> None:
            for broker in self._brokers.values():
                broker.state.groups[group] = config

        self._call(create)

    def store(
        self,
        topic: str,
        *bodies: bytes,
        queue: MessageQueue | None = None,
        tags: str | None = None,
        **fields: object,
    ) -> list[MessageExt]:
        """Store messages without a producer, in ``queue``, by default the topic's first.

        ``fields``: see :func:`stored_message`.
        """
        homes = (name for name, broker in self._brokers.items() if topic in broker.state.topics)
        queue = queue or MessageQueue(topic, next(homes, self._first), 0)
        state = self._brokers[queue.broker_name].state

        def store() -> list[MessageExt]:
            if topic not in state.topics:
                raise TopicNotFoundError(
                    f"fake broker {state.name} has no topic {topic!r}: create_topic first"
                )
            given = {"store_timestamp_ms": self._timers.now_ms(), "store_host": state.addr} | fields
            parts = [
                replace(stored_message(topic, body=body, tags=tags, **given), queue_id=queue.queue_id)  # type: ignore[arg-type]
                for body in bodies
            ]
            return [state.log.append(part).decode(state.name) for part in parts]

        return self._call(store)

    def messages(self, topic: str, queue: MessageQueue | None = None) -> list[MessageExt]:
        """Return the messages of a topic, or of one queue, sorted by broker, queue and offset."""

        def look() -> list[MessageExt]:
            return [
                message
                for name, broker in self._brokers.items()
                for queue_id in broker.state.log.queue_ids(topic)
                if queue in (None, MessageQueue(topic, name, queue_id))
                for message in broker.state.log.messages(topic, queue_id)
            ]

        return self._call(look)

    def half_messages(self) -> list[MessageExt]:
        """Return the half messages without a decision."""
        return self._call(
            lambda: [half for broker in self._brokers.values() for half in broker.transactions.messages()]
        )

    def committed(self, group: str, queue: MessageQueue) -> int | None:
        """Return a group's committed offset of a queue; None: it has none."""
        state = self._brokers[queue.broker_name].state
        return self._call(lambda: state.offsets.get((group, queue.topic, queue.queue_id)))

    def commit(self, group: str, queue: MessageQueue, offset: int | None) -> None:
        """Set a group's offset of a queue, as an administrator would; None: delete it."""
        state = self._brokers[queue.broker_name].state
        place = (group, queue.topic, queue.queue_id)

        def commit() -> None:
            state.group(group)
            state.resets.pop(place, None)
            if offset is None:
                state.offsets.pop(place, None)
            else:
                state.offsets[place] = offset

        self._call(commit)

    def members(self, group: str, *, broker: str | None = None) -> list[str]:
        """Return the client ids of a consumer group, as known by ``broker``, by default the first broker."""
        members = self._brokers[broker or self._first].members
        return self._call(lambda: members.client_ids(group))

    def add_member(self, group: str, client_id: str, report: ConsumerRunningInfo | None = None) -> None:
        """Add a member that does nothing to all brokers, until :meth:`remove_member`.

        ``report``: what it answers to operators; called again, this changes. None: it does not answer.
        """

        def add() -> None:
            for broker in self._brokers.values():
                broker.members.add(group, client_id, report)

        self._call(add)

    def remove_member(self, group: str, client_id: str) -> None:
        """Remove a member that :meth:`add_member` added."""

        def remove() -> None:
            for broker in self._brokers.values():
                broker.members.remove(group, client_id)

        self._call(remove)

    def lock_owner(self, group: str, queue: MessageQueue) -> str | None:
        """Return the client that has locked a queue; None: it is not locked."""
        members = self._brokers[queue.broker_name].members
        return self._call(lambda: members.lock_owner(group, queue))

    def begin_at(self, queue: MessageQueue, offset: int) -> None:
        """Delete the messages before an offset, as expiry does. A new queue starts there."""
        log = self._brokers[queue.broker_name].state.log
        self._call(lambda: log.queue(queue.topic, queue.queue_id).begin_at(offset))

    def end_at(self, queue: MessageQueue, offset: int) -> None:
        """Delete the messages from an offset on, as a broker does that is restored from an older copy."""
        log = self._brokers[queue.broker_name].state.log
        self._call(lambda: log.queue(queue.topic, queue.queue_id).end_at(offset))

    def erase(self, queue: MessageQueue, offset: int) -> None:
        """Delete one message and keep its offset, as a compacted topic does."""
        log = self._brokers[queue.broker_name].state.log
        self._call(lambda: log.queue(queue.topic, queue.queue_id).erase(offset))

    def hide_new(self, broker: str = "broker-a") -> None:
        """Acknowledge new messages, but do not show them to pulls and look-ups of offsets.

        A real broker does so for some milliseconds, and for longer if its dispatching lags behind.
        """
        self._call(self._brokers[broker].state.log.hide_new)

    def show_all(self, broker: str = "broker-a") -> None:
        """Show all messages again, the hidden ones in the order in which they were stored."""
        self._call(self._brokers[broker].state.log.show_all)

    def requests(
        self, code: int | None = None, *, broker: str | None = None, topic: str | None = None
    ) -> list[RemotingCommand]:
        """Return the received requests, oldest first, with the faulty ones: the last 10,000, or 64 MB."""
        return self._call(lambda: self._servers.requests.find(code, broker, topic))

    def fault(
        self,
        *,
        code: int | None = None,
        broker: str | None = None,
        topic: str | None = None,
        queue_id: int | None = None,
        group: str | None = None,
        times: int | None = 1,
        answer: FaultAnswer = Reaction.PASS,
        delay: float = 0.0,
    ) -> Fault:
        """Change the handling of the next matching requests.

        If several faults match a request, the oldest one applies until its budget is used up. A fault with
        PASS leaves the request to the next fault.

        Args:
            code: the request code.
            broker: the server's name; NAME_SERVER for the name server.
            topic: the topic in the request.
            queue_id: the queue id in the request.
            group: the group in the request.
            times: number of requests to which it applies; None: no limit.
            answer: an error code, a response, raw bytes, None for silence, a :class:`Reaction`; or a function
                of the request that returns one of these.
            delay: seconds before the answer is written, or the request is handled.
        """
        fault = Fault(
            code=code,
            broker=broker,
            topic=topic,
            queue_id=queue_id,
            group=group,
            times=times,
            answer=answer,
            delay=delay,
        )
        self._call(lambda: self._servers.faults.append(fault))
        return fault

    def check_transactions(self, group: str | None = None) -> int:
        """Check all half messages now; return the number of check-backs sent to producers."""
        return self._call(lambda: sum(broker.transactions.check(group) for broker in self._brokers.values()))

    def suggest_broker(self, broker_id: int, *, broker: str = "broker-a") -> None:
        """Make a broker and its slaves suggest another broker id in their answers to pulls."""

        def suggest() -> None:
            for pulls in self._brokers[broker].all_pulls:
                pulls.suggested_broker_id = broker_id

        self._call(suggest)

    def advance(self, seconds: float) -> None:
        """Advance the brokers' clock: delays end, locks expire, held pulls return."""
        self._call(lambda: self._timers.advance(seconds))

    def stop(self, name: str, *, in_route: bool = True) -> None:
        """Stop a server as a power cut would, also a frozen one; its messages remain, its locks do not.

        ``in_route``: routes still contain it, as until the name server notices.
        """
        self._call(lambda: self._servers.stop(name, in_route=in_route))

    def announce(self, name: str, addr: str) -> None:
        """Put another address for a broker's server into routes, until the server is restarted."""
        self._call(lambda: self._servers.announce(name, addr))

    def restart(self, name: str) -> None:
        """Start a server again, at its former address."""
        self._call(lambda: self._servers.restart(name))

    def disconnect(self, name: str) -> None:
        """Break the connections of a server; it keeps listening."""
        self._call(lambda: self._servers.disconnect(name))

    hang_up = disconnect  # its name in 0.3.0

    def freeze(self, name: str) -> None:
        """Make a server stand still, as SIGSTOP does: it accepts connections and bytes, and does nothing."""
        self._call(lambda: self._servers.freeze(name))

    def thaw(self, name: str) -> None:
        """Let a frozen server continue: it handles all that came meanwhile.

        Heartbeats of connections that were closed meanwhile count for two minutes, as on a real broker: it
        lists their members again for each.
        """
        self._call(lambda: self._servers.thaw(name))

    def say(self, name: str, data: bytes) -> None:
        """Write bytes to all connections of a server."""
        self._call(lambda: self._servers.say(name, data))

    async def start(self) -> None:
        """Listen, on the running loop."""
        if self._loop is not None:
            raise ClientStateError("this fake cluster runs already: make another one")
        self._loop = asyncio.get_running_loop()
        self._servers.start()
        for name, broker in self._brokers.items():
            broker.state.addr = self.addr(name)

    async def close(self) -> None:
        """Break all connections and stop listening."""
        await self._servers.close()
        self._timers.close()
        self._loop = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __enter__(self) -> Self:
        thread = LoopThread(THREAD_NAME)
        thread.start()
        try:
            thread.run(self.start())
        except BaseException:
            thread.stop()
            raise
        self._thread = thread
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        self._thread.run(self.close())
        self._thread.stop()

    def _call(self, function: Callable[[], T]) -> T:
        """Call the function on the cluster's loop; directly if the loop does not run."""
        return function() if self._loop is None else call_on(self._loop, function)


class LoopThread:
    """An event loop on its own daemon thread, for blocking tests, from :meth:`start` to :meth:`stop`."""

    def __init__(self, name: str) -> None:
        patched = are_threads_greenlets()
        self.loop = new_cooperative_loop() if patched else asyncio.new_event_loop()
        run = partial(run_forever, self.loop) if patched else self.loop.run_forever
        self._thread = threading.Thread(target=run, name=name, daemon=True)

    def start(self) -> None:
        """Start the loop."""
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(_SECONDS)

    def stop(self) -> None:
        """End the loop and the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_SECONDS)
        self.loop.close()


def call_on(loop: asyncio.AbstractEventLoop, function: Callable[[], T]) -> T:
    """Call a function on a running loop, from any thread, and wait for its result."""
    try:
        if asyncio.get_running_loop() is loop:
            return function()
    except RuntimeError:  # no loop runs on this thread
        pass

    async def called() -> T:
        return function()

    return asyncio.run_coroutine_threadsafe(called(), loop).result(_SECONDS)
