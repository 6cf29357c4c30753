"""Reads exact ranges of queues: pipelined pulls, with every predicted offset checked.

From one pull to the next, a broker may return fewer messages than requested (8, not 32, if "on disk").
Pulls in flight ask for predicted offsets, so each answer's ``nextBeginOffset`` is compared with the next
prediction; if they differ, all are discarded and made again. With a filter none is made: the matches decide.

- After a wrong prediction a range read has one pull on the wire and doubles that with each right one. Where
  sizes change all the time, pulls behind a wrong one would make the broker send everything many times.
- Every error of a pull discards the pulls sent after it: they are for other offsets.
- A pull answered PULL_RETRY_IMMEDIATELY with the remark MESSAGE_WAS_REMOVING is a loss, not a gap.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from typing import NoReturn

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.retrying import look_up
from rmqtools.engine.reading.pull_command import parse_pull, pull_request
from rmqtools.engine.reading.range_filter import filter_at_broker
from rmqtools.errors import (
    BrokerError,
    DataLossError,
    ProtocolError,
    RemotingError,
    RocketMQError,
    TopicNotFoundError,
)
from rmqtools.log import get_logger
from rmqtools.model.block import LARGE_MESSAGE_BYTES, MessageBlock
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import SUB_ALL, SubscriptionData
from rmqtools.model.queue import QueueRange
from rmqtools.model.result import PullResult, PullStatus
from rmqtools.policy.publish import is_static
from rmqtools.policy.subscription import TAG
from rmqtools.protocol.messages.inner_batch import message_count
from rmqtools.protocol.messages.stored import (
    MESSAGE_PHYSIC_OFFSET_POSITION,
    message_starts,
    placed_in_queue,
    queue_offset_at,
    whole_starts,
)
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.protocol.wire.template import RequestTemplate

log = get_logger(__name__)

MAX_MSG_NUMS = 32  # a broker's default maxTransferCountOnMessageInMemory; brokers return no more
READ_PATIENCE = 3  # request timeouts without an answer until a read fails
IN_FLIGHT = 64  # pulls of a queue while predictions are right: many share a system call
_FIRST_IN_FLIGHT = 4
_AHEAD_BYTES = 8 * 1024 * 1024  # of answers in flight: the broker works while a batch is decoded
_MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"  # the remark of such an answer


class _GoneError(DataLossError):
    """A part of the range is not stored; the next stored offset may be ``go_on_at``."""

    def __init__(self, text: str, go_on_at: int = 0) -> None:
        self.go_on_at = go_on_at
        super().__init__(text)


class _NotThereYetError(_GoneError):
    """The queue ends before the range; a message acknowledged just now may still appear."""

    retriable = True


@dataclass(slots=True)
class _Prediction:
    """A pull in flight."""

    offset: int
    answer: asyncio.Future[RemotingCommand]
    addr: str


class RangeReader:
    """Reads one range in order, once. At most ``in_flight`` pulls run ahead of its caller.

    Attributes:
        interruptions: requests without an answer so far; another broker may have answered since.
    """

    def __init__(
        self,
        client: ClientCore,
        range_: QueueRange,
        *,
        in_flight: int = IN_FLIGHT,
        read_filter: SubscriptionData | None = None,
        fail_on_data_loss: bool = True,
    ) -> None:
        self._client = client
        self._timeout = client.config.request_timeout
        self._range = range_
        self._filter = read_filter
        self._fail_on_data_loss = fail_on_data_loss
        self._in_flight = in_flight
        self._depth = min(in_flight, _FIRST_IN_FLIGHT)  # pulls in flight now
        self._position = range_.begin  # the next queue offset to hand out
        self._planned = range_.begin  # the next queue offset to ask for
        self._step = MAX_MSG_NUMS
        self._waiting: deque[_Prediction] = deque()
        self._templates: dict[str, RequestTemplate] = {}  # by broker name
        self.interruptions = 0

    async def blocks(self, *, max_messages: int, max_bytes: int) -> AsyncGenerator[MessageBlock, None]:
        """Yield the range as blocks of at least ``max_messages`` or ``max_bytes``; the last may be smaller.

        An answer whose messages have ``LARGE_MESSAGE_BYTES`` on average ends a block: it is not copied.

        Raises:
            BrokerError, ConfigError, UnsupportedError: see :func:`filter_at_broker`.
            DataLossError: a part of the range is not stored, or no longer.
            ProtocolError: a message's total size is impossible, so the rest of its answer cannot be read.
                Earlier messages were handed out; the text names the offset where they end.
            RemotingError: no answer for three times ``request_timeout``.
        """
        if not await self._has_route():
            return
        self._filter = await filter_at_broker(self._client, self._range.queue, self._filter)
        if self._filter is not None:
            self._in_flight = self._depth = 1
        bodies: list[bytes] = []
        starts: list[int] = []
        size = 0
        torn: ProtocolError | None = None  # an answer of which only the first messages are readable
        try:
            while self._position < self._range.end:
                if (result := self._landed_pull() or await self._next_pull_or_loss()) is None:
                    continue
                torn = self._add_starts(starts, result.body, size)
                bodies.append(result.body)
                size += len(result.body)
                if torn is not None:
                    break
                self._advance(result)
                del result  # else it would be kept while the next answer is awaited
                is_large = size >= len(starts) * LARGE_MESSAGE_BYTES
                if starts and (len(starts) >= max_messages or size >= max_bytes or is_large):
                    yield self._block(bodies, starts)
                    bodies, starts, size = [], [], 0
            if starts:
                yield self._block(bodies, starts)
            if torn is not None:
                raise torn
        finally:
            self._forget_predictions()

    async def _has_route(self) -> bool:
        """Return whether the topic can be read; False: it was deleted, and losses are allowed."""
        try:
            await self._client.routes.subscribe_queues(self._range.queue.topic)
        except TopicNotFoundError as error:
            if self._fail_on_data_loss:
                raise
            log.warning("messages_lost", reason=f"{self._range} cannot be read: {error}")
            return False
        return True

    def _landed_pull(self) -> PullResult | None:
        """Return the answer for the current position, if it has arrived and needs no special care.

        A fast path without a coroutine, which is a tenth of a pull's cost; else use :meth:`_next_pull`.
        """
        if self._is_short() or self._waiting[0].offset != self._position:
            return None
        prediction = self._waiting[0]
        if not prediction.answer.done() or prediction.answer.cancelled() or prediction.answer.exception():
            return None
        answer = prediction.answer.result()
        if answer.code != ResponseCode.SUCCESS:
            return None
        result = self._parsed(answer, prediction.addr)
        if result.next_begin_offset <= self._position or self._has_hole_in_front(result):
            return None
        self._waiting.popleft()
        return result

    async def _next_pull_or_loss(self) -> PullResult | None:
        """Return the answer for the current position; None: its messages were lost and skipped."""
        try:
            return await self._next_pull()
        except _GoneError as error:
            if self._fail_on_data_loss:
                raise
            if isinstance(error, _NotThereYetError) and self._is_slave():
                raise DataLossError(f"{error}; that is a slave, wait for its master") from error
            log.warning("messages_lost", reason=str(error))
            self._position = error.go_on_at
        except BrokerError as error:
            if self._fail_on_data_loss or not await self._is_gone(error):
                raise
            log.warning("messages_lost", reason=f"{self._range} cannot be read: {error}")
            self._position = self._range.end
        self._forget_predictions()
        return None

    async def _is_gone(self, error: BrokerError) -> bool:
        """Return whether a broker's refusal means that the topic was deleted, or has fewer queues now."""
        if error.code == ResponseCode.TOPIC_NOT_EXIST:
            return True
        routes, queue = self._client.routes, self._range.queue
        try:
            await routes.refresh(queue.topic)
            return queue not in await routes.subscribe_queues(queue.topic)
        except TopicNotFoundError:
            return True

    async def _next_pull(self) -> PullResult:
        """Return the answer for the current position; asks again after a failed connection.

        A broker acknowledges a message before its queue shows it, so the end of a queue counts only after
        ``request_timeout``.
        """
        return await look_up(self._dispatched_pull, timeout=self._timeout)

    async def _dispatched_pull(self) -> PullResult:
        result = await look_up(self._pull_once, timeout=READ_PATIENCE * self._timeout)
        self._check(result)
        if self._has_hole_in_front(result):
            await self._check_hole(result)
        return result

    def _has_hole_in_front(self, result: PullResult) -> bool:
        body = result.body  # too short to have an offset: not a message, and _starts_in_range reports it
        return len(body) >= MESSAGE_PHYSIC_OFFSET_POSITION and queue_offset_at(body, 0) > self._position

    async def _check_hole(self, result: PullResult) -> None:
        """Tell a gap from a loss. Filters leave holes all the time, so a filter prevents the extra pull."""
        if self._filter is None:
            result = await self._pull_alone()
            self._check_removal(result)
        if result.min_offset > self._position:
            self._raise_lost(min(self._range.end, result.min_offset), "they have expired")

    async def _pull_alone(self) -> PullResult:
        """Pull one message at the current position, for the broker's status."""
        found = self._client.routes.reading_addr(self._range.queue)
        try:
            request = self._template().fill(self._position, 1)
            answer = await self._client.remoting.invoke(found.broker_addr, request, timeout=self._timeout)
            return self._parsed(answer, found.broker_addr)
        except RocketMQError as error:
            await self._start_over(error)
            raise

    async def _pull_once(self) -> PullResult:
        try:
            if self._is_short():
                await self._predict()
            prediction = self._waiting.popleft()
            if prediction.offset != self._position:
                raise ProtocolError(f"the answer for {prediction.offset} came for {self._position}")
            return self._parsed(await prediction.answer, prediction.addr)
        except RocketMQError as error:
            await self._start_over(error)
            raise

    def _parsed(self, answer: RemotingCommand, addr: str) -> PullResult:
        """Parse an answer; messages of a static topic get the id and the offsets of their logic queue."""
        result, queue = parse_pull(answer, addr), self._range.queue
        if not result.body or not is_static(queue):
            return result
        return replace(result, body=placed_in_queue(result.body, queue.queue_id, result.offset_delta))

    async def _start_over(self, error: RocketMQError) -> None:
        """Ask for the position again. Answers in flight are for later offsets, so they are discarded."""
        self._forget_predictions()
        if isinstance(error, RemotingError):
            self.interruptions += 1
            with contextlib.suppress(RocketMQError):  # the master may be down while a slave answers
                await self._client.routes.refresh(self._range.queue.topic)

    def _is_slave(self) -> bool:
        return self._client.routes.reading_addr(self._range.queue).is_slave

    def _is_short(self) -> bool:
        """Return whether more pulls should be in flight."""
        return not self._waiting or (
            len(self._waiting) <= self._depth // 2 and self._planned < self._range.end
        )

    async def _predict(self) -> None:
        """Send predicted pulls until ``depth`` are in flight."""
        addr, timeout = self._client.routes.reading_addr(self._range.queue).broker_addr, self._timeout
        start, self._depth = await self._client.remoting.pipeline(addr, self._depth)
        template = self._template()
        while len(self._waiting) < self._depth and self._planned < self._range.end:
            count = min(MAX_MSG_NUMS, self._range.end - self._planned)
            answer = start(template.fill(self._planned, count), timeout)
            self._waiting.append(_Prediction(self._planned, answer, addr))
            self._planned += min(self._step, count)

    def _template(self) -> RequestTemplate:
        """Template of a pull for the broker that has the queue now; offset and count are filled in."""
        broker_name = self._client.routes.broker_name(self._range.queue)
        template = self._templates.get(broker_name)
        if template is None:
            template = self._templates[broker_name] = self._make_template(broker_name)
        return template

    def _make_template(self, broker_name: str) -> RequestTemplate:
        queue, only = self._range.queue, self._filter
        command = pull_request(
            self._client.wire_topic(queue.topic),
            queue.queue_id,
            self._range.begin,
            broker_name=broker_name,
            max_msg_nums=MAX_MSG_NUMS,
            group=self._client.read_group,
            expression=only.sub_string if only else SUB_ALL,
            expression_type=only.expression_type if only else TAG,
        )
        return RequestTemplate(command, ("queueOffset", "maxMsgNums"))

    def _check_removal(self, result: PullResult) -> None:
        """Report a loss if the broker skips messages because it deletes their file."""
        if result.remark == _MESSAGE_WAS_REMOVING:
            end = min(self._range.end, result.next_begin_offset)
            self._raise_lost(end, "they have expired, the broker is removing them")

    def _raise_lost(self, end: int, reason: str) -> NoReturn:
        if end <= self._position:
            raise ProtocolError(f"pull of {self._range.queue} at {self._position} came back to {end}")
        text = f"offsets [{self._position}, {end}) of {self._range.queue} cannot be read: {reason}"
        raise _GoneError(text, end)

    def _check(self, result: PullResult) -> None:
        """Check that an answer neither skips nor lacks a part of the range."""
        begin, end = self._position, self._range.end
        if result.status in (PullStatus.OFFSET_ILLEGAL, PullStatus.NO_NEW_MSG):
            self._forget_predictions()
            expired = begin < result.min_offset
            low, high = (
                (begin, min(end, result.min_offset)) if expired else (max(begin, result.max_offset), end)
            )
            raise (_GoneError if expired else _NotThereYetError)(
                f"offsets [{low}, {high}) of {self._range.queue} cannot be read: "
                f"the broker has [{result.min_offset}, {result.max_offset})",
                high,
            )
        if result.status is PullStatus.NO_MATCHED_MSG:
            self._check_removal(result)
            # two brokers convert the offsets of a static topic's queue that moves: see puller._moved_to
            is_astray = is_static(self._range.queue) and begin < result.min_offset
            if result.next_begin_offset == begin or is_astray:  # or a slave that does not have it yet
                self._forget_predictions()
                raise _NotThereYetError(f"{self._range.queue} shows no message at {begin} yet", end)
        if result.next_begin_offset <= begin:
            raise ProtocolError(
                f"pull of {self._range.queue} at {begin} came back to {result.next_begin_offset}"
            )

    def _advance(self, result: PullResult) -> None:
        """Advance to the broker's next offset; discard predictions that assumed another one."""
        if result.status is PullStatus.FOUND and result.next_begin_offset < self._range.end:
            self._step = min(MAX_MSG_NUMS, result.next_begin_offset - self._position)
        self._position = result.next_begin_offset
        expected = self._waiting[0].offset if self._waiting else self._planned
        if expected == self._position:
            room = max(1, _AHEAD_BYTES // max(1, len(result.body)))
            self._depth = min(self._in_flight, 2 * self._depth, room)
        else:  # messages of varying size: their number per answer changes
            self._forget_predictions()
            self._depth = 1

    def _forget_predictions(self) -> None:
        for prediction in self._waiting:
            prediction.answer.cancel()
        self._waiting.clear()
        self._planned = self._position

    def _add_starts(self, starts: list[int], body: bytes, base: int) -> ProtocolError | None:
        """Add the starts of an answer's messages; its body begins at ``base``. Returns the error if torn."""
        try:
            starts += self._starts_in_range(body, message_starts(body, base=base, most=MAX_MSG_NUMS), base)
        except ProtocolError as error:
            begin, whole = self._position, whole_starts(body, base=base)[:MAX_MSG_NUMS]
            starts += self._starts_in_range(body, whole, base)
            if whole:
                self._position = max(begin, self._offset_after(body, whole[-1] - base))
            return ProtocolError(
                f"answer to a pull of {self._range.queue} at {begin}: {error}; no message can be found from "
                f"queue offset {self._position} on"
            )
        return None

    def _starts_in_range(self, body: bytes, starts: list[int], base: int) -> list[int]:
        """Return the ``starts`` of messages in the range."""
        if not starts:
            return starts
        if queue_offset_at(body, 0) >= self._position and (
            queue_offset_at(body, starts[-1] - base) < self._range.end
        ):
            return starts
        return [start for start in starts if self._reaches_range(body, start - base)]

    def _reaches_range(self, body: bytes, start: int) -> bool:
        """Return whether a message, or a message of its batch, belongs to the rest of the range."""
        return (
            queue_offset_at(body, start) < self._range.end
            and self._offset_after(body, start) > self._position
        )

    def _offset_after(self, body: bytes, start: int) -> int:
        """Return the queue offset after a message; the range's end for a batch without its message count."""
        try:
            return queue_offset_at(body, start) + message_count(body, start)
        except ProtocolError:
            return self._range.end

    def _block(self, bodies: list[bytes], starts: list[int]) -> MessageBlock:
        end, limit = min(self._position, self._range.end), self._client.config.max_decompressed_bytes
        return MessageBlock(self._range.queue, b"".join(bodies), starts, end, limit)
