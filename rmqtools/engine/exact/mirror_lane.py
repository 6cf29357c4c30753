"""One queue of a mirror: where it goes on, what is copied of it, and how far the copy is."""

import asyncio
from contextlib import suppress
from dataclasses import replace

from rmqtools.config.mirror import MirrorConfig
from rmqtools.engine.admin.broker_requests import fetch_runtime_info
from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.exact.copy_lane import MOST_MESSAGES, CopyLane, CopyPortion, Seen, end_all
from rmqtools.engine.exact.queue_writer import QueueWriter
from rmqtools.engine.exact.tail import FROM, read_range
from rmqtools.engine.producer.producer import Producer
from rmqtools.engine.reading.range_filter import read_filter
from rmqtools.errors import (
    DataLossError,
    ExactAppendError,
    MessageRejectedError,
    ProtocolError,
    RocketMQError,
    SendError,
)
from rmqtools.log import get_logger
from rmqtools.model.copy_message import copy_message
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.mirror import MIRROR_REFUSED, QueueMirror
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.flow import MessageRate
from rmqtools.policy.mirror import MirrorCopies, Pair, Way, decode_pair, key_of, source_time_ms
from rmqtools.protocol.messages.copied import StoredParts

log = get_logger(__name__)

_FOLLOW_PAUSE = 0.5  # seconds between looks for new messages
_LOOK = 1.0  # seconds between looks at what is visible while the writer waits
_LOOKS = 3  # at an end that fell: a broker that has just started may not show all yet


class MirrorLane(CopyLane):
    """The copy of one queue of a mirror; ``rate`` is for all of them, ``target`` sends refused messages."""

    def __init__(
        self,
        client: ClientCore,
        source: MessageQueue,
        writer: QueueWriter,
        way: Way,
        config: MirrorConfig,
        rate: MessageRate | None,
        target: Producer,
    ) -> None:
        super().__init__(
            client,
            source,
            writer,
            request_bytes=config.request_bytes,
            read_filter=read_filter(source.topic, tags=config.tags, sql=config.sql),
            rate=rate,
        )
        self._config = config
        self._target = target
        self._admin = QueueAdmin(client)
        mark = writer.mark_text(0, 0).partition(" ")[2].removesuffix("0")
        self._copies = MirrorCopies(way, tags=config.tags, share=config.share, mark=mark)
        self._seen: Seen | None = None  # the last message that was read and is done
        self._refused_before = 0
        self.pair = Pair(key_of(source), 0)
        self.state = QueueMirror(source=source, target=writer.queue, waits_for="its broker")

    async def run(self, *, follow: bool, until_ms: int | None) -> None:
        """Copy what is there, or what was stored before a time; ``follow``: go on with new messages."""
        self.state = replace(self.state, error="")
        await self._open()
        while True:
            is_last = not follow if until_ms is None else await self._is_past(until_ms)
            await self._copy_round(until_ms if is_last else None)
            if is_last:
                return
            await asyncio.sleep(_FOLLOW_PAUSE)

    def note_width(self, width: int) -> None:
        """Note how many queues the target topic has; recorded with the pair."""
        self.pair = Pair(key_of(self._source), width)
        self._writer.memory.put(FROM, self.pair.encode())

    async def _open(self) -> None:
        """Take the writer's lock, find out what is copied, and check that the source is the one of before.

        Raises:
            DataLossError: it is not.
            ExactAppendError: the target belongs to another source queue; see :meth:`QueueWriter.resume`.
        """
        opening = asyncio.create_task(self._writer.resume())
        try:
            while not (await asyncio.wait({opening}, timeout=_LOOK))[0]:
                with suppress(RocketMQError):
                    await self._look()
            opening.result()
        finally:
            await end_all([opening])
        record = await self._writer.number(FROM)
        if record is not None and decode_pair(record).key != key_of(self._source):
            raise ExactAppendError(
                f"{self._writer.queue} has copies of another queue than {self._source}: another mirror of "
                "this name has paired it; end one of the two, and start again"
            )
        position = await self._begin()
        await self._writer.keep_numbers()
        end = await self._end()
        self.state = replace(
            self.state, position=position, end=max(position, end), waits_for="", is_known=True
        )

    async def _look(self) -> None:
        """Show what is known before the lock is taken."""
        waits_for = self._writer.waits_for or "its broker"
        self.state = replace(self.state, waits_for=waits_for)
        position = self.state.position if self.state.is_known else (await self._writer.look()).next_position
        if position is not None:
            end = await self._admin.max_offset(self._source)
            self.state = replace(self.state, position=position, end=max(position, end), is_known=True)

    async def _begin(self) -> int:
        """Return where the copy goes on, after a comparison of the source with what was read of it before.

        The end comes first: a source that was made anew may grow beyond the position meanwhile.
        """
        tail = self._writer.tail
        begin = tail.next_position if tail.next_position is not None else await self._first()
        await self._check_end(begin, await self._end())
        if tail.position is not None and tail.source_ms is not None:
            await self._check_seen((tail.position, tail.source_ms))
        if tail.noted is not None:
            position, seen_ms = tail.noted
            found = await self._stored_ms(position - 1)
            if found is not None and found > seen_ms:  # all that was read before is older
                raise self._replaced(position - 1)
        await self._pass_to(begin)
        return begin

    async def _first(self) -> int:
        begin = self._config.begin
        if begin == "earliest":
            return await self._from_source(lambda: self._admin.min_offset(self._source))
        return await self._end(None if begin == "latest" else int(begin))

    async def _end(self, until_ms: int | None = None) -> int:
        """Return where the source ends now, or where the messages begin that were stored at a time."""
        if until_ms is None:
            return await self._from_source(lambda: self._admin.max_offset(self._source))
        return await self._from_source(lambda: self._admin.search_offset(self._source, until_ms))

    async def _is_past(self, until_ms: int) -> bool:
        """Return whether the source's broker stores later messages only, by its own clock."""

        async def fetch() -> dict[str, str]:
            addr = self._client.routes.master_addr(self._source.broker_name)
            return await fetch_runtime_info(self._client, addr)

        now_ms = source_time_ms(await self._from_source(fetch))
        return (self._client.clock.now_ms() if now_ms is None else now_ms) > until_ms

    async def _copy_round(self, until_ms: int | None) -> None:
        """Copy what the source has now.

        Raises:
            DataLossError: messages expired before they were copied, or the source was made anew.
            SendError, ExactAppendError: of the target; see :class:`QueueWriter`.
        """
        position, end = self.state.position, await self._end()
        await self._check_end(position, end)
        if until_ms is not None:
            end = min(end, await self._end(until_ms))
        self.state = replace(self.state, end=max(position, end))
        if end > position:
            await self._copy([(position, end)])
            await self._pass_to(end)

    async def _pass_to(self, position: int) -> None:
        """Note that all before a position is done, and which message is before it."""
        if self._seen is None or self._seen[0] != position - 1:
            seen_ms = await self._stored_ms(position - 1)
            self._seen = None if seen_ms is None else (position - 1, seen_ms)
        self._writer.pass_to(position, None if self._seen is None else self._seen[1])

    async def _check_end(self, position: int, end: int) -> None:
        """Check that the source has not become shorter."""
        for _ in range(_LOOKS):
            if end >= position:
                return
            await asyncio.sleep(_LOOK)
            end = await self._end()
        raise DataLossError(f"{self._source} ends at offset {end}, and was read up to {position}: {_REMEDY}")

    async def _check_seen(self, seen: Seen | None) -> None:
        """Check that the source still has the message that was read last, unless it has expired."""
        seen = seen or self._seen
        if seen is not None:
            found = await self._stored_ms(seen[0])
            if found is not None and found != seen[1]:
                raise self._replaced(seen[0])

    def _replaced(self, offset: int) -> DataLossError:
        return DataLossError(
            f"{self._source} has another message at offset {offset} than the one that was read: {_REMEDY}"
        )

    async def _stored_ms(self, offset: int) -> int | None:
        """Return when the source stored a message; None: there is none."""
        message = None if offset < 0 else await self._from_source(lambda: self._read_one(offset))
        return None if message is None else message.store_timestamp_ms

    async def _read_one(self, offset: int) -> MessageExt | None:
        """Return the message at an offset; None: there is none, or it has expired."""
        begin, end = await self._admin.min_offset(self._source), await self._admin.max_offset(self._source)
        if not begin <= offset < end:
            return None
        found = [message async for message in read_range(self._client, self._source, offset, offset + 1)]
        return found[0] if found else None

    async def _refused(self, offset: int, error: SendError | ProtocolError) -> None:
        """Stop, leave the message out, or store it in the topic of refused ones."""
        place = self._config.refused
        if place == "stop":
            raise error
        log.warning("message_refused", queue=str(self._source), offset=offset, reason=str(error))
        self.state = replace(self.state, refused=self.state.refused + 1)
        if place == "skip" or (message := await self._from_source(lambda: self._read_one(offset))) is None:
            return
        text = f"{self._source.broker_name}/{self._source.queue_id}/{offset}: {error}"
        reason = "".join(char if char.isprintable() else " " for char in text[:500])
        copied = copy_message(message, place)
        copied = replace(copied, properties={**copied.properties, MIRROR_REFUSED: reason})
        try:
            await self._target.send(copied)
        except (SendError, MessageRejectedError):
            await self._target.send(Message(place, b"refused", properties={MIRROR_REFUSED: reason}))

    def _passed(self, portion: CopyPortion) -> None:
        now, refused = self.state, self.state.refused - self._refused_before
        self._refused_before = self.state.refused
        count = len(portion.positions) - refused
        self.state = replace(
            now,
            position=portion.next_position,
            copied=now.copied + count,
            left_out=now.left_out + portion.next_position - now.position - count - refused,
        )
        if portion.seen is not None:
            self._seen = portion.seen
            self._writer.pass_to(portion.seen[0] + 1, portion.seen[1])

    def _most_messages(self) -> int:
        limit = self._config.max_messages_per_second
        return MOST_MESSAGES if limit is None else max(1, int(min(MOST_MESSAGES, limit / 4)))

    def _copied_properties(self, parts: StoredParts) -> bytes | None:
        """Return the properties of a copy; None: the message is not copied."""
        return self._copies.properties(parts.properties, parts.queue_offset, parts.store_timestamp_ms)


_REMEDY = (
    "its topic was deleted and made again, or its broker has lost its end. Nothing more is copied. To copy "
    "what is there now behind the old copies, give the mirror another name, and is_new"
)
