"""Many messages: packed into batches, several batches on the wire at once, one result per message.

:meth:`ManySender.send_encoded` sends messages that are encoded already, for ``rmqtools.arrow``.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from rmqtools.config import ProducerConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.producer.encode_send import Encoder, Outgoing, measured
from rmqtools.engine.producer.send import ANY_QUEUE, QueueChoice, Sender, queue_choice, queue_locks
from rmqtools.engine.producer.send_answer import Placed
from rmqtools.engine.producer.send_way import SendWay
from rmqtools.errors import MessageRejectedError, RocketMQError, SendError, SendManyError
from rmqtools.model.encoded_batch import EncodedBatch, MsgIds, StoredBatch
from rmqtools.model.message import Message, topic_of
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendAttempt, SendResult
from rmqtools.policy.packing import cut, pack
from rmqtools.policy.validate import check_message
from rmqtools.protocol.messages.message_id import UniqueIdGenerator

T = TypeVar("T")

_NOT_TRIED = "not tried: a request before it failed"

Fate = tuple[Placed, list[SendAttempt]] | SendError
"""The outcome of a request: its place and attempts, or its error."""


@dataclass(frozen=True, slots=True)
class _BatchRequest:
    """A request to send; encoded only when it is started, to limit memory."""

    topic: str
    encode: Callable[[], Outgoing]
    queue: MessageQueue | None = None
    may_move: bool = True


@dataclass(slots=True, eq=False)
class BatchSeries:
    """Connects several calls that send batches. May be created anywhere; used on one loop.

    Batches of a call are started after those of all earlier calls, so batches of one queue stay in order.
    After a failed batch or a cancelled call, no further one is started.

    Attributes:
        free: number of further requests allowed on the wire.
        ends_at_failure: whether a failed batch ends the series.
        turn: lock of the call that is starting its requests.
        by_queue: locks of queues with a request on the wire.
        has_ended: whether no further batch is started.
    """

    free: asyncio.Semaphore
    ends_at_failure: bool = True
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    by_queue: dict[MessageQueue, asyncio.Lock] = field(default_factory=queue_locks)
    has_ended: bool = False

    def check(self) -> None:
        """Raise if the series has ended."""
        if self.has_ended:
            raise SendError(_NOT_TRIED)


@dataclass(slots=True)
class _RequestsOfCall:
    """The requests of one call, sent in the given order, one per queue at a time.

    A worker sends one request after another, because a task for each costs as much as encoding its header.
    There is one worker more than queues with requests: it waits for the queue of the next request.
    """

    sender: Sender
    series: BatchSeries
    timeout: float | None
    requests: Iterator[tuple[int, _BatchRequest]]
    group: asyncio.TaskGroup
    workers: int = 0
    all_begun: asyncio.Event = field(default_factory=asyncio.Event)
    fates: dict[int, Fate] = field(default_factory=dict)

    async def begin(self) -> None:
        """Start all requests, each when the series has room; tasks of the group wait for the answers."""
        self._start_worker()
        await self.all_begun.wait()

    def _start_worker(self) -> None:
        self.workers += 1
        self.group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            async with self.series.free:
                numbered = next(self.requests, None)
                if numbered is None:
                    self.all_begun.set()
                    return
                await self._place(*numbered)

    async def _place(self, number: int, request: _BatchRequest) -> None:
        """Send a request after earlier ones for its queue; record the outcome."""
        series = self.series
        try:
            series.check()
            queue = request.queue or await self.sender.next_queue(request.topic)
            idle = series.by_queue[queue]
            if self.workers <= len(series.by_queue):
                self._start_worker()
            async with idle:
                series.check()
                choice = ANY_QUEUE if request.queue is None or request.may_move else QueueChoice(queue)
                self.fates[number] = await self.sender.place(
                    request.encode(), choice=choice, first=queue, timeout=self.timeout
                )
        except SendError as error:
            self._fail(number, error)
        except RocketMQError as error:  # the client was closed, or the route has disappeared
            self._fail(number, SendError(str(error)))
        except BaseException:  # cancelled, or a defect; set before the next request of the queue starts
            series.has_ended = True
            raise

    def _fail(self, number: int, error: SendError) -> None:
        self.fates[number] = error
        self.series.has_ended = self.series.has_ended or self.series.ends_at_failure


class ManySender:
    """Sends many messages. At most ``max_in_flight`` requests, of one batch each, are on the wire."""

    def __init__(
        self,
        client: ClientCore,
        config: ProducerConfig,
        *,
        sender: Sender,
        encoder: Encoder,
        ids: UniqueIdGenerator,
    ) -> None:
        self._client = client
        self._ids = ids
        self._sender = sender
        self._encoder = encoder
        self._config = config

    async def send_many(
        self, messages: Sequence[Message], timeout: float | None, sizes: list[int] | None = None
    ) -> list[SendResult]:
        """Send messages of any topics; each topic's batches rotate over its queues.

        ``sizes``: as of ``check_messages``, if it is known.
        """
        groups: list[Sequence[int]] = []
        texts, sizes = measured(messages, sizes)

        def requests() -> Iterator[_BatchRequest]:
            limit = self._config.max_batch_bytes
            for numbers in pack(messages, sizes, limit, all_share=True if texts is None else None):
                groups.append(numbers)
                yield _BatchRequest(
                    messages[numbers[0]].topic, partial(self._encode, messages, texts, numbers)
                )

        series = self.new_series(ends_at_failure=False)
        fates = await self._run(map(topic_of, messages), requests(), series, timeout)
        results: list[Any] = [None] * len(messages)
        for numbers, fate in zip(groups, fates, strict=True):
            told = [fate] * len(numbers) if isinstance(fate, SendError) else fate[0].results(fate[1])
            if isinstance(numbers, range):
                results[numbers.start : numbers.stop] = told
                continue
            for number, one in zip(numbers, told, strict=True):
                results[number] = one
        if any(isinstance(fate, SendError) for fate in fates):
            return _all_or_error(results)
        return results

    def new_series(self, *, ends_at_failure: bool = True) -> BatchSeries:
        """Return a series: calls of :meth:`send_encoded` with it behave like one call with all their batches.

        The calls may overlap and share ``max_in_flight``. After a failed or cancelled call no batch of the
        series is started any more. A call refused with ``MessageRejectedError`` does not affect the series.
        """
        return BatchSeries(asyncio.Semaphore(self._config.max_in_flight), ends_at_failure)

    async def send_encoded(
        self,
        batches: Sequence[EncodedBatch],
        *,
        series: BatchSeries | None = None,
        timeout: float | None = None,
    ) -> list[StoredBatch | SendError]:
        """Send encoded messages, one request per batch, as :meth:`send_many` sends its batches.

        For code that makes batches without a Message per row (``rmqtools.arrow``): only single messages are
        checked. After the first batch that cannot be sent no further ones are started.

        Args:
            batches: batches of one queue, in their order in the queue. Batches of several queues are sent
                concurrently if they alternate.
            series: of :meth:`new_series`, for several calls; None: one for this call.
            timeout: seconds for all attempts of one batch; None: ``send_timeout``.

        Returns:
            For each batch its place in the queue, or its error.

        Raises:
            MessageRejectedError: a single message cannot be sent, or traces are wanted; nothing was sent.
            TopicNotFoundError, PermissionDeniedError, RemotingConnectError: there is no queue to send to;
                nothing was sent.
        """
        self._client.check_started()
        for batch in batches:
            if batch.message is not None:
                check_message(batch.message, self._config.max_message_bytes)
        if self._config.enable_trace:
            raise MessageRejectedError("batches cannot be traced: set enable_trace=False, or use send_many")
        requests = (
            _BatchRequest(batch.topic, partial(self._encoder.complete, batch), batch.queue, batch.may_move)
            for batch in batches
        )
        topics = (batch.topic for batch in batches)
        fates = await self._run(topics, requests, series or self.new_series(), timeout)
        return [fate if isinstance(fate, SendError) else fate[0].stored_batch(fate[1]) for fate in fates]

    async def reserve_msg_ids(self, count: int) -> MsgIds:
        """Reserve unique ids for messages that are encoded elsewhere, at most 65536.

        Source of the rule: MessageClientIDSetter.createUniqID (Java client).
        """
        return self._ids.reserve(count, self._client.clock.now_ms())

    async def send_batch(
        self,
        messages: Sequence[Message],
        queue: MessageQueue | None,
        timeout: float | None,
        way: SendWay | None = None,
        sizes: list[int] | None = None,
    ) -> list[SendResult]:
        """Send messages of one topic, as one request unless they exceed ``max_message_bytes``.

        ``sizes``: as of ``check_messages``, if it is known.
        """
        results: list[SendResult] = []
        texts, sizes = measured(messages, sizes)
        for numbers in cut(sizes, self._config.max_message_bytes):
            outgoing = self._encode_batch(messages, texts, numbers)
            try:
                placed, attempts = await self._sender.place(
                    outgoing, choice=queue_choice(queue, None, None), timeout=timeout, way=way
                )
                results += placed.results(attempts)
            except RocketMQError as error:
                if not results:
                    raise
                failed = error if isinstance(error, SendError) else SendError(str(error))
                untried = SendError(_NOT_TRIED)
                left = len(messages) - len(results) - len(numbers)
                return _all_or_error([*results, *[failed] * len(numbers), *[untried] * left])
        return results

    async def _run(
        self,
        topics: Iterable[str],
        requests: Iterable[_BatchRequest],
        series: BatchSeries,
        timeout: float | None,
    ) -> list[Fate]:
        async with AsyncExitStack() as stack, series.turn:
            try:
                for topic in set(topics):  # raised here, because the task group would wrap the error
                    await self._sender.publish_info(topic)
                group = await stack.enter_async_context(asyncio.TaskGroup())
                run = _RequestsOfCall(self._sender, series, timeout, enumerate(requests), group)
                await run.begin()
            except BaseException:  # cancelled, refused or a defect; set before another call starts
                series.has_ended = True
                raise
        return [run.fates[number] for number in range(len(run.fates))]

    def _encode(
        self, messages: Sequence[Message], texts: Sequence[str] | None, numbers: Sequence[int]
    ) -> Outgoing:
        if len(numbers) == 1:
            return self._encoder.encode(messages[numbers[0]])
        return self._encode_batch(messages, texts, numbers)

    def _encode_batch(
        self, messages: Sequence[Message], texts: Sequence[str] | None, numbers: Sequence[int]
    ) -> Outgoing:
        return self._encoder.encode_batch(
            _taken(messages, numbers), None if texts is None else _taken(texts, numbers)
        )


def _taken(values: Sequence[T], numbers: Sequence[int]) -> Sequence[T]:
    """Return the values with these numbers."""
    if isinstance(numbers, range):
        return values[numbers.start : numbers.stop]
    return [values[number] for number in numbers]


def _all_or_error(results: Sequence[SendResult | SendError]) -> list[SendResult]:
    stored = [result for result in results if isinstance(result, SendResult)]
    if len(stored) == len(results):
        return stored
    first = next(result for result in results if isinstance(result, SendError))
    text = f"{len(results) - len(stored)} of {len(results)} messages could not be placed; the first: {first}"
    raise SendManyError(text, results) from first
