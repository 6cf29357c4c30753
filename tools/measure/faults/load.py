"""The load of every case: four producers and two readers of one group, all on one event loop.

Each producer sends one message after the other, at a fixed rate at most. The readers are pull consumers that
share the topic's queues. In the end a third reader, the party ``sweep``, reads every queue from its first to
its last offset, as a witness of what the brokers have stored.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rmqtools import (
    ClientConfig,
    ConsumeFromWhere,
    Message,
    MessageQueue,
    ProducerConfig,
    PullConsumerConfig,
    QueueRange,
)
from rmqtools.aio import Admin, Client, Producer, PullConsumer
from rmqtools.errors import CorruptBodyError, RocketMQError, SendError, UnknownOutcomeError
from rmqtools.model.message import MessageExt
from rmqtools.model.result import SendAttempt
from tools.measure.faults.body import decode_body, encode_body
from tools.measure.faults.history import Answered, Attempt, History, Holds, MessageId, Place, Read, Sent

_ENDS_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class LoadConfig:
    """Amount of load, and the clients that make it."""

    producers: int = 4
    readers: int = 2
    per_second: float = 40.0
    """Messages of each producer a second, at most."""
    body_bytes: int = 200
    drain_seconds: float = 60.0
    client: Mapping[str, Any] = field(default_factory=dict)
    """Settings of all clients."""
    producer: Mapping[str, Any] = field(default_factory=dict)
    reader: Mapping[str, Any] = field(default_factory=dict)


class Load:
    """Producers and readers of one topic; ``start``, wait, ``stop_sending``, ``drain``, ``close``."""

    def __init__(self, history: History, config: LoadConfig, *, name_server: str, topic: str) -> None:
        self._history = history
        self._config = config
        self._topic = topic
        client = {"name_server": name_server, **config.client}
        self._client_settings = client
        self._producers = [
            Producer(ProducerConfig(**{**client, **config.producer})) for _ in range(config.producers)
        ]
        self.group = f"faults-{topic}"
        group: dict[str, Any] = {
            "group": self.group,
            "consume_from": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        }
        self._reader_settings = {**client, **group, **config.reader}
        self._readers: dict[str, PullConsumer] = {}
        self._sending: list[asyncio.Task[None]] = []
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._is_sending = True
        self.unique_ids: dict[MessageId, set[str]] = defaultdict(set)
        """The unique keys that the producers' client gave each message; copies share one."""
        self._has_read = asyncio.Event()
        self._stored_at: set[tuple[str, int]] = set()
        self._read_to: dict[tuple[str, int], int] = {}

    @property
    def producer(self) -> Producer:
        """One of the producers, for a case's own messages."""
        return self._producers[0]

    async def start(self) -> None:
        """Begin to read, then to send."""
        for number in range(self._config.readers):
            await self.add_reader(f"r{number}")
        for number, producer in enumerate(self._producers):
            await producer.start()
            self._sending.append(asyncio.create_task(self._send_all(f"p{number}", producer)))

    async def add_reader(self, name: str) -> None:
        """One more member of the group."""

        def holds(topic: str, _: Collection[MessageQueue], own: Collection[MessageQueue]) -> None:
            if topic == self._topic:
                self.holds(name, {(queue.broker_name, queue.queue_id) for queue in own})

        consumer = PullConsumer(PullConsumerConfig(**self._reader_settings), message_queue_listener=holds)
        consumer.subscribe(self._topic)
        await consumer.start()
        self._readers[name] = consumer
        self._reading[name] = asyncio.create_task(self._read_all(name, consumer))

    async def remove_reader(self) -> None:
        """One member leaves the group, if another stays."""
        if len(self._readers) > 1:
            name = next(iter(self._readers))
            consumer, reading = self._readers.pop(name), self._reading.pop(name)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await consumer.close()
            self.holds(name, ())

    async def stop_sending(self) -> None:
        """Let every send end; no new one begins."""
        self._is_sending = False
        await asyncio.gather(*self._sending)

    async def drain(self) -> None:
        """Wait, not for ever, until the group has read all queues to the end. Then the witness reads."""
        async with Client(_client_config(self._client_settings)) as client, Admin(client) as admin:
            ends = await _ends(admin, self._topic, {place[0] for place in self._stored_at})
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.drain_seconds):
                    while self._is_behind(ends):
                        self._has_read.clear()
                        await self._has_read.wait()
            for queue, end in ends.items():
                await self._sweep(client, queue, await admin.min_offset(queue), end)

    async def close(self) -> None:
        """Close all clients, whatever state they are in."""
        for task in [*self._sending, *self._reading.values()]:
            task.cancel()
        await asyncio.gather(*self._sending, *self._reading.values(), return_exceptions=True)
        await asyncio.gather(*(c.close() for c in (*self._producers, *self._readers.values())))

    async def _send_all(self, name: str, producer: Producer) -> None:
        pause = 1 / self._config.per_second
        sequence = 0
        while self._is_sending:
            began = self._history.at()
            await self._send(producer, MessageId(name, sequence))
            sequence += 1
            await asyncio.sleep(max(0.0, pause - (self._history.at() - began)))

    async def _send(self, producer: Producer, message: MessageId) -> None:
        body = encode_body(message, self._config.body_bytes)
        self._history.add(Sent(self._history.at(), message))
        try:
            result = await producer.send(Message(self._topic, body))
        except SendError as error:
            outcome = "unknown" if isinstance(error, UnknownOutcomeError) else "refused"
            self._answered(message, outcome, None, error.attempts)
        except RocketMQError:
            self._answered(message, "refused", None, ())
        else:
            place = Place(result.queue.broker_name, result.queue.queue_id, result.queue_offset)
            self._stored_at.add(place[:2])
            self._answered(message, "stored", place, result.attempts, result.status.value)

    def _answered(
        self,
        message: MessageId,
        outcome: str,
        place: Place | None,
        attempts: tuple[SendAttempt, ...],
        status: str = "SEND_OK",
    ) -> None:
        tries = tuple(Attempt(a.queue.broker_name, a.outcome.value, round(a.seconds, 4)) for a in attempts)
        self._history.add(Answered(self._history.at(), message, outcome, place, tries, status))

    async def _read_all(self, name: str, consumer: PullConsumer) -> None:
        while True:
            for message in await consumer.poll(1.0):
                self._read(message, "group", name)

    def _read(self, message: MessageExt, party: str, reader: str) -> None:
        place = Place(message.broker_name, message.queue_id, message.queue_offset)
        try:
            body = message.body
        except CorruptBodyError:
            body = b""  # which is nobody's
        self.was_read(party, reader, place, body, message.msg_id)

    def holds(self, reader: str, queues: Collection[tuple[str, int]]) -> None:
        """Note the queues of a reader; of ours, or of one in another process."""
        self._history.add(Holds(self._history.at(), reader, tuple(sorted(queues))))

    def was_read(self, party: str, reader: str, place: Place, body: bytes, unique_id: str) -> None:
        """Note what a reader was given; of ours, or of one in another process."""
        whose = decode_body(body)
        self._history.add(Read(self._history.at(), party, reader, place, whose))
        if whose is not None:
            self.unique_ids[whose].add(unique_id)
        if party == "group":
            self._read_to[place[:2]] = max(self._read_to.get(place[:2], 0), place.queue_offset + 1)
            self._has_read.set()

    def _is_behind(self, ends: Mapping[MessageQueue, int]) -> bool:
        return any(self._read_to.get((q.broker_name, q.queue_id), 0) < end for q, end in ends.items())

    async def _sweep(self, client: Client, queue: MessageQueue, begin: int, end: int) -> None:
        if begin == end:
            return
        async for messages in client.read_messages(QueueRange(queue, begin, end)):
            for message in messages:
                self._read(message, "sweep", "sweep")


def _client_config(settings: Mapping[str, Any]) -> ClientConfig:
    return ClientConfig(**{"request_timeout": 5.0, **settings})


async def _ends(admin: Admin, topic: str, brokers: Collection[str]) -> dict[MessageQueue, int]:
    """Find the end of every queue that can be read; ask until all brokers that stored something answer."""
    now = asyncio.get_running_loop().time
    deadline = now() + _ENDS_SECONDS
    while True:
        try:
            ends = {q: await admin.max_offset(q) for q in await admin.fetch_subscribe_queues(topic)}
            if {queue.broker_name for queue in ends} >= set(brokers) or now() > deadline:
                return ends
        except RocketMQError:
            if now() > deadline:
                raise
        await asyncio.sleep(0.5)
        await admin._client.routes.refresh(topic)
