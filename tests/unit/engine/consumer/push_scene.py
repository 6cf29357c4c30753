"""A push consumer that was not started, with queues in its hands and a scripted broker behind them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.consumer.push_consumer import PushConsumer
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import stored_message
from tests.support.clock import ManualClock
from tests.support.scripted_peer import Script, ScriptedPeer

QUEUE = MessageQueue("T", "broker-a", 0)


def stored(
    offset: int, *, topic: str = "T", times: int = 0, tags: str | None = None, **properties: str
) -> MessageExt:
    """A message as a broker stores it; its commit log offset is derived from its queue offset."""
    hosts: Any = {"born_host": "10.0.0.1:1", "store_host": "10.0.0.2:10911", "broker_name": "broker-a"}
    return stored_message(topic, offset, tags=tags, reconsume_times=times, properties=properties, **hosts)


def agrees(request: RemotingCommand) -> RemotingCommand:
    return response(ResponseCode.SUCCESS, 0)


def refuses(request: RemotingCommand) -> RemotingCommand:
    return response(ResponseCode.SYSTEM_ERROR, 0, remark="scripted")


async def until(true: Callable[[], object]) -> None:
    """Let the loop run until something has become true."""
    async with asyncio.timeout(5):
        while not true():  # noqa: ASYNC110 - any condition, not an event
            await asyncio.sleep(0.001)


async def idle(rounds: int = 20) -> None:
    """Let everything run that can run without time passing."""
    for _ in range(rounds):
        await asyncio.sleep(0)


@dataclass
class Scene:
    """``held`` is the consumer's one queue; the other attributes are the parts that tests work with."""

    consumer: PushConsumer
    broker: ScriptedPeer
    held: ProcessQueue
    clock: ManualClock
    heard: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.member: Any = self.consumer._member
        self.client: Any = self.consumer._client
        self.consumption: Any = self.consumer._consumption
        self.puller: Any = self.consumer._puller
        self.popper: Any = self.consumer._popper
        self.pop_consumption: Any = self.consumer._pop_consumption
        self.fetching: Any = self.consumer._fetching
        self.listeners: Any = self.consumer._listeners
        self.ownership: Any = self.consumer._ownership

    @property
    def committed(self) -> int | None:
        return self.member.offsets.read_memory(QUEUE)

    @property
    def is_resting(self) -> bool:
        """True if somebody waits for a change of the queue."""
        return bool(self.held._changed._waiters)

    def arrive(self, *messages: MessageExt) -> None:
        """Deliver the messages of a pull."""
        if (answer := self.held.put(messages)) is not None:
            self.fetching.fetched(self.held, answer)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and everything run that waited for it."""
        self.clock.advance(seconds)
        self.member.held.wake()
        await idle()

    def hold(self, queue: MessageQueue, next_offset: int = 0) -> ProcessQueue:
        """Hold another queue, its lock too; the test drops it."""
        held = self.member.held.pulled[queue] = ProcessQueue(queue, self.clock, next_offset)
        held.lock(True)
        return held

    def asked(self, code: RequestCode) -> list[dict[str, Any]]:
        """The fields of the requests of a code that came to the broker."""
        return [dict(request.ext_fields) for request in self.broker.requests if request.code == code]


@asynccontextmanager
async def pushing(
    listener: Callable[..., Any] | None = None, *, answer: Script = agrees, **settings: Any
) -> AsyncIterator[Scene]:
    """A consumer that holds QUEUE from offset 0 on, its lock too."""
    clock = ManualClock()
    async with ScriptedPeer(answer).serving() as broker:
        config = PushConsumerConfig(name_server=broker.addr, group="g", **settings)
        consumer = PushConsumer._with_clock(config, clock)
        consumer._client.routes.tables.broker_addrs["broker-a"] = {0: broker.addr}
        held = ProcessQueue(QUEUE, clock, 0, consumer._member.held.cached)
        scene = Scene(consumer, broker, held, clock)
        held.lock(True)
        scene.member.held.pulled[QUEUE] = held
        consumer.subscribe("T", listener or hears(scene))
        try:
            yield scene
        finally:
            held.drop()
            await consumer._puller.close()
            await consumer._consumption.close(0.01)
            await consumer._client.close()


def hears(scene: Scene) -> Callable[..., Any]:
    """A listener that notes the offsets it is given, and acknowledges them."""

    async def listen(messages, context) -> None:
        scene.heard.append([message.queue_offset for message in messages])

    return listen


def waits_for(event: asyncio.Event, heard: list[int] | None = None) -> Callable[..., Any]:
    """A listener that notes offsets in ``heard``, waits, and acknowledges."""

    async def listen(messages, context) -> None:
        if heard is not None:
            heard.append(messages[0].queue_offset)
        await event.wait()

    return listen
