"""One queue that is copied into another one: reads ranges of the source, and appends what belongs there.

While one request is on the wire, the next ones are read and encoded. Bodies are copied as they are stored.
"""

import asyncio
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Collection, Coroutine, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.exact.queue_writer import QueueWriter, rest_of
from rmqtools.engine.reading.range_read import RangeReader
from rmqtools.errors import (
    BrokerError,
    ConfigError,
    DataLossError,
    ProtocolError,
    RocketMQError,
    SendError,
)
from rmqtools.log import get_logger
from rmqtools.model.append_mark import APPEND_MARK
from rmqtools.model.block import MessageBlock
from rmqtools.model.group import SubscriptionData
from rmqtools.model.message import Message
from rmqtools.model.parcel import MsgIds, Parcel
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.model.route import BATCH_CQ
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.policy.exact_append import is_of_messages
from rmqtools.policy.flow import MessageRate
from rmqtools.policy.mirror import may_come_back
from rmqtools.protocol.messages.copied import StoredParts, encode_copied, stored_parts

log = get_logger(__name__)

MARK = APPEND_MARK.encode()
MOST_MESSAGES = 10_000  # of a request
_READ_AHEAD = 2  # requests
_PAUSE_AFTER_ERROR = 1.0  # seconds between requests to a source that does not answer
_COMPRESSION = int(MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_TYPE_COMPARATOR)
_INNER_BATCH = int(MessageSysFlag.INNER_BATCH_FLAG)


Seen = tuple[int, int]
"""A message that was read: its offset, and when it was stored. Another message there has another time."""


@dataclass(slots=True)
class Portion:
    """Messages of one request; none: all up to ``next_position`` are left out.

    Attributes:
        next_position: the first position behind it.
        seen: the last message that was read for it; None: none was.
        positions: of its messages.
        parcel: its messages.
        error: the reason why its one message cannot be encoded; it has no parcel.
    """

    next_position: int
    seen: Seen | None
    positions: Sequence[int] = ()
    parcel: Parcel | None = None
    error: ProtocolError | None = None


@dataclass(slots=True)
class _Open:
    """A request that is being filled."""

    sys_flag: int
    pieces: list[bytes]
    positions: list[int]
    size: int = 0


class CopyLane(ABC):
    """The copy of one queue to another one; a message's position is its offset in the source.

    ``rate``: shared with other queues; None: no limit.
    """

    def __init__(
        self,
        client: ClientCore,
        source: MessageQueue,
        writer: QueueWriter,
        *,
        request_bytes: int,
        read_filter: SubscriptionData | None = None,
        rate: MessageRate | None = None,
    ) -> None:
        self._client, self._source, self._writer = client, source, writer
        self._request_bytes, self._filter, self._rate = request_bytes, read_filter, rate

    @abstractmethod
    def _copied_properties(self, parts: StoredParts) -> bytes | None:
        """Return the properties of a copy; None: the message is not copied."""

    @abstractmethod
    def _passed(self, portion: Portion) -> None:
        """Note that a portion is stored, or left out."""

    async def _refused(self, portion: Portion, error: SendError | ProtocolError) -> None:
        """Handle a message that the target refuses."""
        raise error

    async def _check_seen(self, seen: Seen | None) -> None:  # noqa: B027 - staged rows are decided by a record
        """Check that the source still has the message that was read last, after an interruption."""

    def _single(self, data: bytes, start: int, properties: bytes) -> Message | None:
        """Return the message for a target that takes no batches; None: it does."""
        return None

    def _most_messages(self) -> int:
        """Return how many messages are read at a time."""
        return MOST_MESSAGES

    async def _copy(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Copy ranges of the source, in this order; errors as of :meth:`QueueWriter.append`.

        Raises:
            DataLossError: messages expired before they were copied.
        """
        portions: asyncio.Queue[Portion | None] = asyncio.Queue(_READ_AHEAD)
        reading = asyncio.create_task(self._read(ranges, portions))
        try:
            while (portion := await portions.get()) is not None:
                await self._store(portion)
                self._passed(portion)
            await reading  # raises its error
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _store(self, portion: Portion) -> None:
        """Append a portion; one that is refused is halved until it is one message."""
        if portion.error is not None:
            await self._refused(portion, portion.error)
        if portion.parcel is None:
            return
        await self._await_turn(len(portion.positions))
        try:
            await self._writer.append(portion.parcel, portion.positions)
        except SendError as error:
            cause = error.__cause__
            if not isinstance(cause, BrokerError) or not is_of_messages(cause.code, cause.remark):
                raise
            if len(portion.positions) == 1:
                await self._refused(portion, error)
                return
            for half in self._halves(portion):
                await self._store(half)

    def _halves(self, portion: Portion) -> Iterator[Portion]:
        """Yield both halves of what is not stored of a portion."""
        assert portion.parcel is not None
        stored = bisect_left(portion.positions, self._writer.next_position or 0)
        parcel, positions = rest_of(portion.parcel, stored), portion.positions[stored:]
        middle = max(1, len(positions) // 2)
        second = rest_of(parcel, middle)
        first = replace(
            parcel, body=parcel.body[: len(parcel.body) - len(second.body)], msg_ids=parcel.msg_ids[:middle]
        )
        for half, at in ((first, positions[:middle]), (second, positions[middle:])):
            if at:
                yield Portion(portion.next_position, portion.seen, at, half)

    async def _await_turn(self, count: int) -> None:
        """Wait until so many messages may be appended."""
        if self._rate is not None:
            clock = self._client.clock
            while pause := self._rate.delay(clock.monotonic()):  # noqa: ASYNC110 - others may be first
                await asyncio.sleep(pause)
            self._rate.fetched(count, clock.monotonic())

    async def _read(
        self, ranges: Sequence[tuple[int, int]], portions: "asyncio.Queue[Portion | None]"
    ) -> None:
        """Read and encode. Put None at the end and after an error, not after a cancellation."""
        try:
            for begin, end in ranges:
                await self._read_range(begin, end, portions)
        except Exception:
            await portions.put(None)
            raise
        await portions.put(None)

    async def _read_range(self, position: int, end: int, portions: "asyncio.Queue[Portion | None]") -> None:
        seen: Seen | None = None
        while position < end:
            reader = RangeReader(
                self._client, QueueRange(self._source, position, end), read_filter=self._filter
            )
            blocks = reader.blocks(max_messages=self._most_messages(), max_bytes=self._request_bytes)
            checked = 0
            try:
                async with aclosing(blocks):
                    async for block in blocks:
                        if reader.interruptions > checked:
                            checked = reader.interruptions
                            await self._check_seen(seen)
                        for portion in self._portions(block, position):
                            await portions.put(portion)
                            seen = portion.seen or seen
                        position = block.next_offset
                await portions.put(Portion(end, None))
                position = end
            except RocketMQError as error:
                if isinstance(error, DataLossError):
                    await self._check_seen(seen)  # it may say more
                await self._await_source(error)
                await self._check_seen(seen)

    async def _await_source(self, error: RocketMQError) -> None:
        """Wait a little for a source that does not answer; raise every other error."""
        if not may_come_back(error):
            raise error
        log.warning("source_awaited", queue=str(self._source), reason=str(error))
        await asyncio.sleep(_PAUSE_AFTER_ERROR)

    def _portions(self, block: MessageBlock, begin: int) -> Iterator[Portion]:
        """Yield the requests of a block; the last one has the offset after the block."""
        open_ = _Open(0, [], [])
        seen: Seen | None = None
        for start in block.starts:
            parts = stored_parts(block.buffer, start)
            if parts.sys_flag & _INNER_BATCH:
                raise ConfigError(
                    f"topic {self._source.topic!r} has the queue type {BATCH_CQ}: a stored batch has one "
                    "offset for many messages; topics of queue type SimpleCQ can be copied"
                )
            if parts.queue_offset < begin:
                continue
            offset, before, seen = parts.queue_offset, seen, (parts.queue_offset, parts.store_timestamp_ms)
            properties = self._copied_properties(parts)
            if properties is None:
                continue
            try:
                pieces = encode_copied(parts, properties)
            except ProtocolError as error:
                if open_.positions:
                    yield self._closed(open_, offset, before)
                    open_ = _Open(0, [], [])
                yield Portion(offset + 1, seen, [offset], error=error)
                continue
            if (message := self._single(block.buffer, start, properties)) is not None:
                yield Portion(
                    offset + 1, seen, [offset], Parcel(topic=self._writer.queue.topic, message=message)
                )
                continue
            sys_flag, size = parts.sys_flag & _COMPRESSION, len(parts.body) + len(properties)
            is_full = open_.size + size > self._request_bytes
            if open_.positions and (is_full or sys_flag != open_.sys_flag):
                yield self._closed(open_, offset, before)
                open_ = _Open(0, [], [])
            open_.sys_flag = sys_flag
            open_.pieces += pieces
            open_.positions.append(offset)
            open_.size += size
        if open_.positions:
            yield self._closed(open_, block.next_offset, seen)
        else:
            yield Portion(block.next_offset, seen)

    def _closed(self, open_: _Open, next_position: int, seen: Seen | None) -> Portion:
        queue = self._writer.queue
        parcel = Parcel(
            topic=queue.topic,
            body=b"".join(open_.pieces),
            msg_ids=MsgIds("", 0, len(open_.positions)),
            queue=queue,
            sys_flag=open_.sys_flag,
        )
        return Portion(next_position, seen, open_.positions, parcel)


async def run_all(*works: Coroutine[Any, Any, None]) -> None:
    """Run all; the first error ends the others and is raised as it is."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        for task in asyncio.as_completed(tasks):
            await task
    finally:
        await end_all(tasks)


async def end_all(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
