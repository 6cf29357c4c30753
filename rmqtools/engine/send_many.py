"""Many messages: packed into batches, several batches on the wire at once, one result per message."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from rmqtools.config import ProducerConfig
from rmqtools.engine.encode_send import Encoder, Outgoing
from rmqtools.engine.send import ANY_QUEUE, QueueChoice, Sender
from rmqtools.engine.send_answer import Placed
from rmqtools.errors import RocketMQError, SendError, SendManyError
from rmqtools.model.message import Message
from rmqtools.model.parcel import Parcel, ParcelResult
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendAttempt, SendResult
from rmqtools.policy.packing import pack

Fate = tuple[Placed, list[SendAttempt]] | SendError
"""What became of a request: where it was placed and by which attempts, or why it was not."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A request to come; encoded when its turn has come, so that memory holds few at a time."""

    topic: str
    encode: Callable[[], Outgoing]
    queue: MessageQueue | None = None
    may_move: bool = True


@dataclass(slots=True)
class _Run:
    """The requests of one call, on the wire in the order given, one per queue at a time.

    Brokers store pipelined requests to one queue in any order.
    """

    sender: Sender
    free: asyncio.Semaphore
    timeout: float | None
    ends_at_failure: bool = False
    fates: dict[int, Fate] = field(default_factory=dict)
    lines: dict[MessageQueue, asyncio.Lock] = field(default_factory=dict)
    failed: bool = False

    async def place(self, requests: Iterable[_Request]) -> list[Fate]:
        """Place all; with ``ends_at_failure`` those that come after the first failure are not begun."""
        count = 0
        async with asyncio.TaskGroup() as group:
            for number, request in enumerate(requests):
                count += 1
                await self.free.acquire()
                try:
                    queue = request.queue or await self.sender.next_queue(request.topic)
                except RocketMQError as error:  # the last queue has left the route meanwhile
                    self._file(number, SendError(str(error)))
                    self.free.release()
                    continue
                task = group.create_task(self._place(number, request, queue))
                task.add_done_callback(lambda _: self.free.release())
        return [self.fates[number] for number in range(count)]

    async def _place(self, number: int, request: _Request, queue: MessageQueue) -> None:
        """Place a request after those before it on its queue; file what became of it."""
        choice = ANY_QUEUE if request.queue is None or request.may_move else QueueChoice(queue)
        try:
            async with self.lines.setdefault(queue, asyncio.Lock()):
                if self.failed and self.ends_at_failure:
                    raise SendError("not tried: a request before it failed")
                outgoing = request.encode()
                self._file(
                    number,
                    await self.sender.place_whole(outgoing, choice=choice, first=queue, timeout=self.timeout),
                )
        except SendError as error:
            self._file(number, error)
        except RocketMQError as error:  # the client was closed, or the route has gone
            self._file(number, SendError(str(error)))

    def _file(self, number: int, fate: Fate) -> None:
        self.fates[number] = fate
        self.failed = self.failed or isinstance(fate, SendError)


class ManySender:
    """Places many messages. What is in flight is bounded: ``max_in_flight`` requests of a batch each."""

    def __init__(self, sender: Sender, encoder: Encoder, config: ProducerConfig) -> None:
        self._sender = sender
        self._encoder = encoder
        self._config = config

    async def send_many(self, messages: Sequence[Message], timeout: float | None) -> list[SendResult]:
        """Place messages of any topics, each topic's batches in turn over its queues."""
        await self._check_topics(message.topic for message in messages)
        groups: list[list[int]] = []

        def requests() -> Iterator[_Request]:
            for numbers in pack(messages, self._config.max_batch_bytes):
                groups.append(numbers)
                portion = [messages[number] for number in numbers]
                yield _Request(portion[0].topic, partial(self._encode, portion))

        fates = await self._run(timeout).place(requests())
        results: dict[int, SendResult | SendError] = {}
        for numbers, fate in zip(groups, fates, strict=True):
            told = [fate] * len(numbers) if isinstance(fate, SendError) else fate[0].results(fate[1])
            results.update(zip(numbers, told, strict=True))
        return _all_or_error([results[number] for number in range(len(messages))])

    async def send_parcels(
        self, parcels: Sequence[Parcel], timeout: float | None
    ) -> list[ParcelResult | SendError]:
        """Place parcels; what became of each."""
        await self._check_topics(parcel.topic for parcel in parcels)
        fates = await self._run(timeout, ends_at_failure=True).place(
            _Request(
                parcel.topic, partial(self._encoder.encode_parcel, parcel), parcel.queue, parcel.may_move
            )
            for parcel in parcels
        )
        return [fate if isinstance(fate, SendError) else fate[0].parcel_result(fate[1]) for fate in fates]

    async def send_batch(
        self, messages: Sequence[Message], queue: MessageQueue | None, timeout: float | None
    ) -> list[SendResult]:
        """Place messages of one topic, as one request unless they are larger than ``max_message_bytes``."""
        results: list[SendResult] = []
        for numbers in pack(messages, self._config.max_message_bytes):
            outgoing = self._encoder.encode_batch([messages[number] for number in numbers])
            try:
                results += await self._sender.place(outgoing, choice=QueueChoice(queue), timeout=timeout)
            except RocketMQError as error:
                if not results:
                    raise
                failed = error if isinstance(error, SendError) else SendError(str(error))
                untried = SendError("not tried: a request before it failed")
                left = len(messages) - len(results) - len(numbers)
                return _all_or_error([*results, *[failed] * len(numbers), *[untried] * left])
        return results

    def _run(self, timeout: float | None, *, ends_at_failure: bool = False) -> _Run:
        free = asyncio.Semaphore(self._config.max_in_flight)
        return _Run(self._sender, free, timeout, ends_at_failure)

    async def _check_topics(self, topics: Iterable[str]) -> None:
        """Raise what speaks against a topic now: a ``TaskGroup`` would wrap it."""
        for topic in set(topics):
            await self._sender.publish_info(topic)

    def _encode(self, messages: Sequence[Message]) -> Outgoing:
        return (
            self._encoder.encode(messages[0]) if len(messages) == 1 else self._encoder.encode_batch(messages)
        )


def _all_or_error(results: Sequence[SendResult | SendError]) -> list[SendResult]:
    stored = [result for result in results if isinstance(result, SendResult)]
    if len(stored) == len(results):
        return stored
    first = next(result for result in results if isinstance(result, SendError))
    text = f"{len(results) - len(stored)} of {len(results)} messages could not be placed; the first: {first}"
    raise SendManyError(text, results) from first
