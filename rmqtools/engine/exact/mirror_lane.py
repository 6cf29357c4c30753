"""One queue of a mirror: what is copied of it, which way a copy has come, and how far the copy is."""

from dataclasses import replace

from rmqtools.config.mirror import MirrorConfig
from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.exact.appender import ExactAppender
from rmqtools.engine.exact.copy_lane import LEFT_OUT, MARK, MOST_MESSAGES, CopyLane, Portion
from rmqtools.engine.reading.range_filter import read_filter
from rmqtools.errors import RocketMQError
from rmqtools.model.copy_message import copy_message
from rmqtools.model.message import Message
from rmqtools.model.message_const import (
    PROPERTY_KEYS,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from rmqtools.model.mirror import MIRROR_WAY, QueueMirror
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.flow import MessageRate
from rmqtools.policy.mirror import Way, is_in_share
from rmqtools.protocol.messages.copied import StoredParts
from rmqtools.protocol.messages.stored import decode_message

_WAY, _TAGS = MIRROR_WAY.encode(), PROPERTY_TAGS.encode()
_KEY_NAMES = tuple(
    name.encode() for name in (PROPERTY_SHARDING_KEY, PROPERTY_KEYS, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
)


class MirrorLane(CopyLane):
    """The copy of one queue of a mirror; ``rate`` is shared by all of them."""

    def __init__(
        self,
        client: ClientCore,
        source: MessageQueue,
        appender: ExactAppender,
        way: Way,
        config: MirrorConfig,
        rate: MessageRate | None,
    ) -> None:
        super().__init__(
            client,
            source,
            appender,
            request_bytes=config.request_bytes,
            read_filter=read_filter(source.topic, tags=config.tags, sql=config.sql),
            rate=rate,
        )
        self._way, self._config = way, config
        self._admin = QueueAdmin(client)
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
        await self._copy([(self._state.position, end)])

    async def _first(self) -> int:
        begin = self._config.begin
        if begin == "earliest":
            return await self._admin.min_offset(self._source)
        if begin == "latest":
            return await self._admin.max_offset(self._source)
        return await self._admin.search_offset(self._source, int(begin))

    def _passed(self, portion: Portion) -> None:
        now = self._state
        self._state = replace(
            now,
            position=portion.next_position,
            copied=now.copied + portion.count,
            left_out=now.left_out + portion.next_position - now.position - portion.count,
        )

    def _most_messages(self) -> int:
        limit = self._config.max_messages_per_second
        return MOST_MESSAGES if limit is None else max(1, min(MOST_MESSAGES, int(limit / 4)))

    def _copied_properties(self, parts: StoredParts) -> bytes | None:
        """Return the properties of a copy; None: the message is not copied."""
        kept, way = [], b""
        for pair in parts.properties:
            name, _, value = pair.partition(b"\x01")
            if name not in LEFT_OUT:
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
        kept.append(b"%s\x01%s\x02%s\x01%s\x02" % (MARK, mark, _WAY, following))
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

    def _single(self, data: bytes, start: int, properties: bytes) -> Message | None:
        """Return a message for a retry topic, which takes no batches; None: another topic."""
        if not self._goes_singly:
            return None
        stored = decode_message(data, start)
        copied = copy_message(stored, self._appender.queue.topic)
        pairs = (pair.partition("\x01") for pair in properties.decode("utf-8", "replace").split("\x02"))
        own = {PROPERTY_KEYS, PROPERTY_TAGS, PROPERTY_SHARDING_KEY, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX}
        return replace(
            copied, properties={name: value for name, _, value in pairs if name and name not in own}
        )
