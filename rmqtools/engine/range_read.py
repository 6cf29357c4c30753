"""Reading exact ranges of queues: pulls pipelined, every prediction checked, gaps passed over.

A broker may answer a pull with fewer messages than asked for, from one pull to the next (8 instead
of 32 when messages count as "on disk"). Pulls in flight are sent to predicted offsets, so each answer's
``nextBeginOffset`` is compared with the next prediction; where they differ
the predictions are thrown away and made again.
"""

import asyncio
import contextlib
import struct
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from rmqtools.engine.client import ClientCore
from rmqtools.engine.lookup import look_up
from rmqtools.engine.transport import Connection
from rmqtools.errors import BrokerError, DataLossError, ProtocolError, RemotingError, RocketMQError
from rmqtools.model.block import MessageBlock
from rmqtools.model.codes import ResponseCode
from rmqtools.model.queue import QueueRange
from rmqtools.model.result import PullResult, PullStatus
from rmqtools.model.sys_flag import PullSysFlag
from rmqtools.protocol.command import RemotingCommand, request
from rmqtools.protocol.headers import PullMessageRequestHeader, PullMessageResponseHeader, decode_header
from rmqtools.protocol.messages import QUEUE_OFFSET_POSITION, message_starts

READER_GROUP = "TOOLS_CONSUMER"  # known to every broker, so reading makes no new group
MAX_MSG_NUMS = 32  # a broker's default maxTransferCountOnMessageInMemory: more is not returned
READ_PATIENCE = 3  # request timeouts until a read that gets no answer gives up
IN_FLIGHT = 4  # pulls per queue; more gains nothing on one connection

_MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"  # the remark of such an answer
_QUEUE_OFFSET = struct.Struct(">q")
_STATUS_BY_CODE: dict[int, PullStatus] = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW_MSG,
    ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED_MSG,
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
}


def pull_request(
    wire_topic: str, queue_id: int, offset: int, *, broker_name: str, max_msg_nums: int, group: str
) -> RemotingCommand:
    """A pull of everything, answered at once: no long poll, no commit."""
    header = PullMessageRequestHeader(
        consumer_group=group,
        topic=wire_topic,
        queue_id=queue_id,
        queue_offset=offset,
        max_msg_nums=max_msg_nums,
        sys_flag=PullSysFlag.FLAG_SUBSCRIPTION,
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription="*",
        sub_version=0,
        expression_type="TAG",
        bname=broker_name,
    )
    return request(header)


def parse_pull(answer: RemotingCommand, addr: str) -> PullResult:
    """Read a broker's answer to a pull.

    Raises:
        BrokerError: a code that is no outcome of a pull.
    """
    status = _STATUS_BY_CODE.get(answer.code)
    if status is None:
        raise BrokerError(answer.code, answer.remark, addr)
    header = decode_header(PullMessageResponseHeader, answer.ext_fields)
    return PullResult(
        status,
        header.next_begin_offset,
        header.min_offset,
        header.max_offset,
        header.suggest_which_broker_id,
        answer.body if status is PullStatus.FOUND else b"",
        answer.remark or "",
    )


class _NotThereYetError(DataLossError):
    """The queue ends before the range does; a message acknowledged just now may still appear."""

    retriable = True


@dataclass(slots=True)
class _Prediction:
    """A pull in flight."""

    offset: int
    answer: asyncio.Future[RemotingCommand]


class RangeReader:
    """Reads one range in order. One use; keeps at most ``in_flight`` answers ahead of its caller."""

    def __init__(self, client: ClientCore, range_: QueueRange, *, in_flight: int = IN_FLIGHT) -> None:
        self._client = client
        self._range = range_
        self._in_flight = in_flight
        self._position = range_.begin  # the next queue offset to hand out
        self._planned = range_.begin  # the next queue offset to ask for
        self._step = MAX_MSG_NUMS
        self._waiting: deque[_Prediction] = deque()

    async def blocks(self, *, max_messages: int, max_bytes: int) -> AsyncIterator[MessageBlock]:
        """Yield the range as blocks of at least ``max_messages`` messages or ``max_bytes``, but for the last.

        Raises:
            DataLossError: a part of the range is not, or no longer, there.
            RemotingError: nobody answered for three times ``request_timeout``.
        """
        await self._client.routes.subscribe_queues(self._range.queue.topic)
        bodies: list[bytes] = []
        starts: list[int] = []
        size = 0
        try:
            while self._position < self._range.end:
                result = await self._next_pull()
                starts.extend(size + start for start in self._starts_in_range(result))
                bodies.append(result.body)
                size += len(result.body)
                self._advance(result)
                if len(starts) >= max_messages or size >= max_bytes:
                    yield self._block(bodies, starts)
                    bodies, starts, size = [], [], 0
            if starts:
                yield self._block(bodies, starts)
        finally:
            self._forget_predictions()

    async def _next_pull(self) -> PullResult:
        """The answer for the current position; asked again where the connection failed.

        A broker acknowledges a message before its queue shows it, so an end of the queue is believed only
        after ``request_timeout``.
        """
        return await look_up(self._dispatched_pull, timeout=self._client.config.request_timeout)

    async def _dispatched_pull(self) -> PullResult:
        budget = READ_PATIENCE * self._client.config.request_timeout
        result = await look_up(self._pull_once, timeout=budget)
        self._check(result)
        if self._has_hole_in_front(result):
            self._check_removal(await self._pull_alone())
        return result

    def _has_hole_in_front(self, result: PullResult) -> bool:
        return bool(result.body) and _queue_offset_at(result.body, 0) > self._position

    async def _pull_alone(self) -> PullResult:
        """One message at the current position, for what the broker says of it."""
        found = self._client.routes.reading_addr(self._range.queue)
        connection = await self._client.remoting.connect(found.broker_addr)
        command = self._request(self._position, 1)
        return parse_pull(
            await connection.start(command, self._client.config.request_timeout), found.broker_addr
        )

    async def _pull_once(self) -> PullResult:
        found = self._client.routes.reading_addr(self._range.queue)
        try:
            connection = await self._client.remoting.connect(found.broker_addr)
            self._predict(connection)
            prediction = self._waiting.popleft()
            assert prediction.offset == self._position  # else an answer would be taken for another's
            return parse_pull(await prediction.answer, found.broker_addr)
        except RocketMQError as error:
            self._forget_predictions()  # the answers in flight are for offsets behind the one to ask again
            if isinstance(error, RemotingError):
                with contextlib.suppress(RocketMQError):  # the master may be dead, a slave may live
                    await self._client.routes.refresh(self._range.queue.topic)
            raise

    def _predict(self, connection: Connection) -> None:
        """Keep ``in_flight`` pulls on the wire."""
        while len(self._waiting) < self._in_flight and self._planned < self._range.end:
            count = min(MAX_MSG_NUMS, self._range.end - self._planned)
            answer = connection.start(
                self._request(self._planned, count), self._client.config.request_timeout
            )
            self._waiting.append(_Prediction(self._planned, answer))
            self._planned += min(self._step, count)

    def _request(self, offset: int, count: int) -> RemotingCommand:
        queue = self._range.queue
        command = pull_request(
            self._client.wire_topic(queue.topic),
            queue.queue_id,
            offset,
            broker_name=self._client.routes.broker_name(queue),
            max_msg_nums=count,
            group=READER_GROUP,
        )
        return self._client.remoting.signed(command)

    def _check_removal(self, result: PullResult) -> None:
        """Refuse what a broker passes over because its file was deleted: that is no gap but a loss."""
        if result.remark == _MESSAGE_WAS_REMOVING:
            raise DataLossError(
                f"offsets [{self._position}, {min(self._range.end, result.next_begin_offset)}) of "
                f"{self._range.queue} cannot be read: they have expired, the broker is removing them"
            )

    def _check(self, result: PullResult) -> None:
        """Refuse an answer that skips or lacks a part of the range."""
        begin, end = self._position, self._range.end
        if result.status in (PullStatus.OFFSET_ILLEGAL, PullStatus.NO_NEW_MSG):
            self._forget_predictions()
            expired = begin < result.min_offset
            low, high = (
                (begin, min(end, result.min_offset)) if expired else (max(begin, result.max_offset), end)
            )
            raise (DataLossError if expired else _NotThereYetError)(
                f"offsets [{low}, {high}) of {self._range.queue} cannot be read: "
                f"the broker has [{result.min_offset}, {result.max_offset})"
            )
        if result.status is PullStatus.NO_MATCHED_MSG:
            self._check_removal(result)
            if result.next_begin_offset == begin:  # a slave that does not have the message yet
                self._forget_predictions()
                raise _NotThereYetError(f"{self._range.queue} shows no message at {begin} yet")
        if result.next_begin_offset <= begin:
            raise ProtocolError(
                f"pull of {self._range.queue} at {begin} came back to {result.next_begin_offset}"
            )

    def _advance(self, result: PullResult) -> None:
        """Move on to what the broker says comes next; predictions that assumed otherwise are dropped."""
        if result.status is PullStatus.FOUND and result.next_begin_offset < self._range.end:
            self._step = min(MAX_MSG_NUMS, result.next_begin_offset - self._position)
        self._position = result.next_begin_offset
        expected = self._waiting[0].offset if self._waiting else self._planned
        if expected != self._position:
            self._forget_predictions()

    def _forget_predictions(self) -> None:
        for prediction in self._waiting:
            prediction.answer.cancel()
        self._waiting.clear()
        self._planned = self._position

    def _starts_in_range(self, result: PullResult) -> list[int]:
        starts = message_starts(result.body)
        if not starts:
            return starts
        if _queue_offset_at(result.body, starts[0]) >= self._position and (
            _queue_offset_at(result.body, starts[-1]) < self._range.end
        ):
            return starts
        wanted = range(self._position, self._range.end)
        return [start for start in starts if _queue_offset_at(result.body, start) in wanted]

    def _block(self, bodies: list[bytes], starts: list[int]) -> MessageBlock:
        return MessageBlock(self._range.queue, b"".join(bodies), starts, min(self._position, self._range.end))


def _queue_offset_at(body: bytes, start: int) -> int:
    """The queue offset of the message that begins at ``start``."""
    return int(_QUEUE_OFFSET.unpack_from(body, start + QUEUE_OFFSET_POSITION)[0])
