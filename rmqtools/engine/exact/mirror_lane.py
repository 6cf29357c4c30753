"""One queue of a mirror: reads its source, and appends what belongs into the copy.

While one request is on the wire, the next ones are read and encoded. Bodies are copied as they are stored.
"""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace

from rmqtools.config.mirror import MirrorConfig
from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.exact.appender import ExactAppender
from rmqtools.engine.reading.range_filter import read_filter
from rmqtools.engine.reading.range_read import RangeReader
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.append_mark import APPEND_MARK
from rmqtools.model.block import MessageBlock
from rmqtools.model.copy_message import copy_message
from rmqtools.model.message import Message
from rmqtools.model.message_const import (
    PROPERTY_KEYS,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from rmqtools.model.mirror import MIRROR_WAY, NOT_COPIED, QueueMirror
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.parcel import MsgIds, Parcel
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.model.route import BATCH_CQ
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.policy.flow import MessageRate
from rmqtools.policy.mirror import Way, is_in_share, may_come_back
from rmqtools.protocol.messages.copied import StoredParts, encode_copied, stored_parts
from rmqtools.protocol.messages.stored import decode_message

log = get_logger(__name__)

_MOST_MESSAGES = 10_000  # of a request
_READ_AHEAD = 2  # requests
_PAUSE_AFTER_ERROR = 1.0  # seconds until a source that does not answer is asked again
_COMPRESSION = int(MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_TYPE_COMPARATOR)
_INNER_BATCH = int(MessageSysFlag.INNER_BATCH_FLAG)
_NOT_COPIED = frozenset(name.encode() for name in NOT_COPIED)
_MARK, _WAY, _TAGS = APPEND_MARK.encode(), MIRROR_WAY.encode(), PROPERTY_TAGS.encode()
_KEY_NAMES = tuple(
    name.encode() for name in (PROPERTY_SHARDING_KEY, PROPERTY_KEYS, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
)


@dataclass(slots=True)
class _Portion:
    """Messages of one request; none: all up to ``next_position`` are left out."""

    next_position: int
    positions: list[int] | None = None
    parcel: Parcel | None = None


@dataclass(slots=True)
class _Open:
    """A request that is being filled."""

    sys_flag: int
    pieces: list[bytes]
    positions: list[int]
    size: int = 0


class MirrorLane:
    """The copy of one queue to another one. ``rate``: shared by all queues of the mirror; None: no limit."""

    def __init__(
        self,
        client: ClientCore,
        source: MessageQueue,
        appender: ExactAppender,
        way: Way,
        config: MirrorConfig,
        rate: MessageRate | None,
    ) -> None:
        self._client, self._source, self._appender = client, source, appender
        self._way, self._config, self._rate = way, config, rate
        self._admin = QueueAdmin(client)
        self._filter = read_filter(source.topic, tags=config.tags, sql=config.sql)
        self._tags = frozenset(tag.encode() for tag in config.tags)
        self._chooses = bool(self._tags) or config.share < 1.0
        self._was_open = False
        self._goes_singly = appender.queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        self._ways: dict[bytes, bytes | None] = {}
        self._state = QueueMirror(
            source=source, target=appender.queue, position=0, end=0, copied=0, left_out=0
        )

    @property
    def state(self) -> QueueMirror:
        """Progress of this queue."""
        return self._state

    async def open(self) -> None:
        """Find out what is copied already; errors as of :meth:`ExactAppender.resume`."""
        await self._appender.start()
        last = self._appender.last_position
        if last is not None:
            position = last + 1
        elif self._was_open:  # nothing of what it has passed was to be copied
            position = self._state.position
        else:
            position = await self._first()
        self._was_open = True
        self._state = replace(self._state, position=position, end=max(position, self._state.end))

    async def close(self) -> None:
        """Stop writing."""
        await self._appender.close()

    async def end(self, until_ms: int | None = None) -> int:
        """Return where the source ends now, or where the messages begin that were stored at a time."""
        while True:
            try:
                if until_ms is None:
                    return await self._admin.max_offset(self._source)
                return await self._admin.search_offset(self._source, until_ms)
            except RocketMQError as error:
                await self._await_source(error)

    async def copy_to(self, end: int) -> None:
        """Copy up to an offset of the source.

        Raises:
            DataLossError: messages expired before they were copied.
            SendError, ExactAppendError: of the target; see :class:`ExactAppender`.
        """
        self._state = replace(self._state, end=end)
        portions: asyncio.Queue[_Portion | None] = asyncio.Queue(_READ_AHEAD)
        reading = asyncio.create_task(self._read_to(end, portions))
        try:
            while (portion := await portions.get()) is not None:
                await self._append(portion)
            await reading  # raises its error
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _first(self) -> int:
        begin = self._config.begin
        if begin == "earliest":
            return await self._admin.min_offset(self._source)
        if begin == "latest":
            return await self._admin.max_offset(self._source)
        return await self._admin.search_offset(self._source, int(begin))

    async def _append(self, portion: _Portion) -> None:
        count = 0
        if portion.parcel is not None and portion.positions is not None:
            count = len(portion.positions)
            await self._await_turn(count)
            await self._appender._append_parcel(portion.parcel, portion.positions)
        now = self._state
        self._state = replace(
            now,
            position=portion.next_position,
            copied=now.copied + count,
            left_out=now.left_out + portion.next_position - now.position - count,
        )

    async def _await_turn(self, count: int) -> None:
        if self._rate is not None:
            clock = self._client.clock
            while pause := self._rate.delay(clock.monotonic()):  # noqa: ASYNC110 - others may be first
                await asyncio.sleep(pause)
            self._rate.fetched(count, clock.monotonic())

    async def _read_to(self, end: int, portions: "asyncio.Queue[_Portion | None]") -> None:
        """Read and encode; None at the end, also after an error."""
        position = self._state.position
        try:
            while position < end:
                reader = RangeReader(
                    self._client, QueueRange(self._source, position, end), read_filter=self._filter
                )
                most = self._most_messages()
                blocks = reader.blocks(max_messages=most, max_bytes=self._config.request_bytes)
                try:
                    async with aclosing(blocks):
                        async for block in blocks:
                            for portion in self._portions(block, position):
                                await portions.put(portion)
                            position = block.next_offset
                    await portions.put(_Portion(end))
                    position = end
                except RocketMQError as error:
                    await self._await_source(error)
        finally:
            await portions.put(None)

    async def _await_source(self, error: RocketMQError) -> None:
        """Wait a little for a source that does not answer; raise every other error."""
        if not may_come_back(error):
            raise error
        log.warning("source_awaited", queue=str(self._source), reason=str(error))
        await asyncio.sleep(_PAUSE_AFTER_ERROR)

    def _most_messages(self) -> int:
        limit = self._config.max_messages_per_second
        return _MOST_MESSAGES if limit is None else max(1, min(_MOST_MESSAGES, int(limit / 4)))

    def _portions(self, block: MessageBlock, begin: int) -> Iterator[_Portion]:
        """Yield the requests of a block; the last one has the offset after the block."""
        open_ = _Open(0, [], [])
        for start in block.starts:
            parts = stored_parts(block.buffer, start)
            if parts.sys_flag & _INNER_BATCH:
                raise ConfigError(
                    f"topic {self._source.topic!r} has the queue type {BATCH_CQ}: a stored batch has one "
                    "offset for many messages; a mirror copies topics of queue type SimpleCQ"
                )
            properties = self._copied_properties(parts)
            if properties is None or parts.queue_offset < begin:
                continue
            if self._goes_singly:
                parcel = Parcel(
                    topic=self._appender.queue.topic, message=self._single(block.buffer, start, properties)
                )
                yield _Portion(parts.queue_offset + 1, [parts.queue_offset], parcel)
                continue
            sys_flag, size = parts.sys_flag & _COMPRESSION, len(parts.body) + len(properties)
            is_full = open_.size + size > self._config.request_bytes
            if open_.positions and (is_full or sys_flag != open_.sys_flag):
                yield self._closed(open_, parts.queue_offset)
                open_ = _Open(0, [], [])
            open_.sys_flag = sys_flag
            open_.pieces += encode_copied(parts, properties)
            open_.positions.append(parts.queue_offset)
            open_.size += size
        if open_.positions:
            yield self._closed(open_, block.next_offset)
        else:
            yield _Portion(block.next_offset)

    def _closed(self, open_: _Open, next_position: int) -> _Portion:
        queue = self._appender.queue
        parcel = Parcel(
            topic=queue.topic,
            body=b"".join(open_.pieces),
            msg_ids=MsgIds("", 0, len(open_.positions)),
            queue=queue,
            sys_flag=open_.sys_flag,
        )
        return _Portion(next_position, open_.positions, parcel)

    def _copied_properties(self, parts: StoredParts) -> bytes | None:
        """Return the properties of a copy; None: the message is not copied."""
        kept, way = [], b""
        for pair in parts.properties:
            name, _, value = pair.partition(b"\x01")
            if name not in _NOT_COPIED:
                if value:
                    kept.append(pair)
            elif name == _WAY:
                way = value
        if self._chooses and not self._is_chosen(parts):
            return None
        following = self._next_way(way)
        if following is None:
            return None
        mark = self._appender._mark_text(parts.queue_offset).encode()
        kept.append(b"%s\x01%s\x02%s\x01%s\x02" % (_MARK, mark, _WAY, following))
        return b"\x02".join(kept)

    def _is_chosen(self, parts: StoredParts) -> bool:
        """Return whether a message has one of the tags, and belongs to the share."""
        pairs = (pair.partition(b"\x01") for pair in parts.properties)
        found = {name: value for name, _, value in pairs}
        if self._tags and found.get(_TAGS) not in self._tags:
            return False
        key = next((found[name] for name in _KEY_NAMES if found.get(name)), b"")
        return self._config.share >= 1.0 or is_in_share(key, self._config.share)

    def _next_way(self, way: bytes) -> bytes | None:
        if way not in self._ways:
            following = self._way.next(way.decode("utf-8", "replace"))
            if len(self._ways) >= 1000:
                self._ways.clear()
            self._ways[way] = None if following is None else following.encode()
        return self._ways[way]

    def _single(self, data: bytes, start: int, properties: bytes) -> Message:
        """Return a message for a retry topic, which takes no batches."""
        stored = decode_message(data, start)
        copied = copy_message(stored, self._appender.queue.topic)
        pairs = (pair.partition("\x01") for pair in properties.decode("utf-8", "replace").split("\x02"))
        own = {PROPERTY_KEYS, PROPERTY_TAGS, PROPERTY_SHARDING_KEY, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX}
        return replace(
            copied, properties={name: value for name, _, value in pairs if name and name not in own}
        )
