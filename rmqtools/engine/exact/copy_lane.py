"""One queue that is copied into another one: reads ranges of the source, and appends what belongs there.

While one request is on the wire, the next ones are read and encoded. Bodies are copied as they are stored.

A batch has one sys flag, so messages of another compression begin a new request.
"""

import asyncio
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.exact.awaiting import until_there
from rmqtools.engine.exact.queue_writer import QueueWriter
from rmqtools.engine.reading.range_read import RangeReader
from rmqtools.errors import (
    BrokerError,
    ConfigError,
    ProtocolError,
    RocketMQError,
    SendError,
)
from rmqtools.model.append_mark import APPEND_MARK
from rmqtools.model.block import MessageBlock
from rmqtools.model.copy_message import copy_message
from rmqtools.model.encoded_batch import EncodedBatch, MsgIds
from rmqtools.model.group import SubscriptionData
from rmqtools.model.message import Message
from rmqtools.model.message_const import (
    PROPERTY_KEYS,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.model.route import BATCH_CQ
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.policy.exact_append import is_of_messages
from rmqtools.policy.flow import MessageRate
from rmqtools.policy.mirror import may_come_back
from rmqtools.protocol.messages.batch import FIXED_BYTES
from rmqtools.protocol.messages.copied import StoredParts, encode_copied, stored_parts
from rmqtools.protocol.messages.found import decode_one

T = TypeVar("T")

MARK = APPEND_MARK.encode()
MOST_MESSAGES = 10_000  # of a request
_READ_AHEAD = 2  # requests
_PAUSE_AFTER_ERROR = 1.0  # seconds between requests to a source that does not answer
_COMPRESSION = int(MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_TYPE_COMPARATOR)
_INNER_BATCH = int(MessageSysFlag.INNER_BATCH_FLAG)
_OF_COPIES = {PROPERTY_KEYS, PROPERTY_TAGS, PROPERTY_SHARDING_KEY, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX}


Seen = tuple[int, int]
"""A message that was read: its offset, and when it was stored. Another message there has another time."""


@dataclass(slots=True)
class CopyPortion:
    """Messages of one request, and how far the source is read with them.

    Attributes:
        next_position: the first position behind it.
        seen: the last message that was read for it; None: none was.
        positions: of its messages; none: all up to ``next_position`` are left out.
        messages: the pieces of each, to be joined.
        sys_flag: of all of them.
        size: bytes of all of them.
        alone: instead of pieces: a message that cannot be in a batch, or the reason why it cannot be encoded.
    """

    next_position: int
    seen: Seen | None = None
    positions: list[int] = field(default_factory=list)
    messages: list[tuple[bytes, ...]] = field(default_factory=list)
    sys_flag: int = 0
    size: int = 0
    alone: Message | ProtocolError | None = None


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
        self._client = client
        self._source = source
        self._writer = writer
        self._request_bytes = request_bytes
        takes_batches = not writer.queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        self._batch_bytes = writer.most_bytes if takes_batches else 0
        self._filter = read_filter
        self._rate = rate

    @abstractmethod
    def _copied_properties(self, parts: StoredParts) -> bytes | None:
        """Return the properties of a copy; None: the message is not copied."""

    @abstractmethod
    def _passed(self, portion: CopyPortion) -> None:
        """Note that a portion is stored, or left out."""

    async def _refused(self, offset: int, error: SendError | ProtocolError) -> None:
        """Handle a message that the target refuses."""
        raise error

    async def _check_seen(self, seen: Seen | None) -> None:  # noqa: B027 - staged rows are decided by a record
        """Check that the source still has the message that was read last, before more is read."""

    def _single(self, data: bytes, start: int, size: int, properties: bytes) -> Message | None:
        """Return a message that goes alone; None: it can be in a batch, where it has ``size`` bytes.

        Retry topics take no batches. Brokers limit the bytes of a whole batch, but only the body of a single
        message.

        Raises:
            ProtocolError: its body cannot be read.
        """
        if size <= self._batch_bytes:
            return None
        most = self._client.config.max_decompressed_bytes
        (stored,) = decode_one(data, start, self._source, unwraps=False, max_body_bytes=most)
        pairs = (pair.partition("\x01") for pair in properties.decode("utf-8", "replace").split("\x02"))
        texts = {name: value for name, _, value in pairs if name and name not in _OF_COPIES}
        return replace(copy_message(stored, self._writer.queue.topic), properties=texts)

    def _most_messages(self) -> int:
        """Return how many messages are read at a time."""
        return MOST_MESSAGES

    async def _copy(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Copy ranges of the source, in this order; errors as of :meth:`QueueWriter.append`.

        Raises:
            DataLossError: messages expired before they were copied.
        """
        portions: asyncio.Queue[CopyPortion | None] = asyncio.Queue(_READ_AHEAD)
        reading = asyncio.create_task(self._read(ranges, portions))
        try:
            while (portion := await portions.get()) is not None:
                await self._store(portion)
                self._passed(portion)
            await reading  # raises its error
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _store(self, portion: CopyPortion) -> None:
        """Append a portion; one that is refused is halved until it is one message."""
        if isinstance(portion.alone, ProtocolError):
            await self._refused(portion.positions[0], portion.alone)
            return
        if not portion.positions:
            return
        await self._await_turn(len(portion.positions))
        try:
            await self._writer.append(self._batch(portion), portion.positions)
        except SendError as error:
            cause = error.__cause__
            if not isinstance(cause, BrokerError) or not is_of_messages(cause.code, cause.remark):
                raise
            stored = bisect_left(portion.positions, self._writer.tail.next_position or 0)
            rest = len(portion.positions) - stored
            if rest == 1:
                await self._refused(portion.positions[-1], error)
                return
            for half in (slice(stored, stored + rest // 2), slice(stored + rest // 2, None)):
                positions, messages = portion.positions[half], portion.messages[half]
                await self._store(replace(portion, positions=positions, messages=messages))

    def _batch(self, portion: CopyPortion) -> EncodedBatch:
        queue = self._writer.queue
        if isinstance(portion.alone, Message):
            return EncodedBatch(topic=queue.topic, message=portion.alone, queue=queue)
        return EncodedBatch(
            topic=queue.topic,
            body=b"".join(chain.from_iterable(portion.messages)),
            msg_ids=MsgIds("", 0, len(portion.positions)),
            queue=queue,
            sys_flag=portion.sys_flag,
        )

    async def _await_turn(self, count: int) -> None:
        """Wait until so many messages may be appended."""
        if self._rate is not None:
            clock = self._client.clock
            while pause := self._rate.delay(clock.monotonic()):  # noqa: ASYNC110 - others may be first
                await asyncio.sleep(pause)
            self._rate.fetched(count, clock.monotonic())

    async def _read(
        self, ranges: Sequence[tuple[int, int]], portions: "asyncio.Queue[CopyPortion | None]"
    ) -> None:
        """Read and encode. Put None at the end and after an error, not after a cancellation."""
        try:
            for begin, end in ranges:
                await self._read_range(begin, end, portions)
        except Exception:
            await portions.put(None)
            raise
        await portions.put(None)

    async def _read_range(
        self, position: int, end: int, portions: "asyncio.Queue[CopyPortion | None]"
    ) -> None:
        seen: Seen | None = None

        async def read() -> None:
            nonlocal position, seen
            await self._check_seen(seen)
            reader = RangeReader(
                self._client, QueueRange(self._source, position, end), read_filter=self._filter
            )
            blocks = reader.blocks(max_messages=self._most_messages(), max_bytes=self._request_bytes)
            async with aclosing(blocks):
                async for block in blocks:
                    if reader.interruptions:  # another broker may have answered: compare first
                        return
                    for portion in self._portions(block, position):
                        await portions.put(portion)
                        seen = portion.seen or seen
                    position = block.next_offset
            position = end

        while position < end:
            await self._from_source(read)
        await portions.put(CopyPortion(end, None))

    async def _from_source(self, request: Callable[[], Awaitable[T]]) -> T:
        """Return an answer of the source; waits while it is away."""

        async def is_away(error: RocketMQError) -> bool:
            return may_come_back(error)

        return await until_there(
            request, is_away, event="source_awaited", pause=_PAUSE_AFTER_ERROR, queue=str(self._source)
        )

    def _portions(self, block: MessageBlock, begin: int) -> Iterator[CopyPortion]:
        """Yield the requests of a block; the last one has the offset after the block."""
        portion = CopyPortion(begin)
        for start in block.starts:
            parts = stored_parts(block.buffer, start)
            offset = parts.queue_offset
            if parts.sys_flag & _INNER_BATCH:
                raise ConfigError(
                    f"topic {self._source.topic!r} has the queue type {BATCH_CQ}: a stored batch has one "
                    "offset for many messages; topics of queue type SimpleCQ can be copied"
                )
            if offset < begin:
                continue
            if (properties := self._copied_properties(parts)) is not None:
                sys_flag, size = parts.sys_flag & _COMPRESSION, len(parts.body) + len(properties)
                alone: Message | ProtocolError | None
                try:
                    message = encode_copied(parts, properties)
                    alone = self._single(block.buffer, start, FIXED_BYTES + size, properties)
                except ProtocolError as error:
                    alone, message = error, ()
                is_other = sys_flag != portion.sys_flag or alone is not None or portion.alone is not None
                if portion.positions and (is_other or portion.size + size > self._request_bytes):
                    yield portion
                    portion = CopyPortion(offset)
                portion.positions.append(offset)
                portion.messages.append(message)
                portion.size += size
                portion.sys_flag, portion.alone = sys_flag, alone
            portion.next_position, portion.seen = offset + 1, (offset, parts.store_timestamp_ms)
        portion.next_position = block.next_offset
        yield portion


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
