"""An exact appender: one writer of one queue, one request on the wire, and the queue's tail as its memory.

    append -> lock renewed lately? -> write the request -> its answer, however late
                                                             |  connection lost
                                                             v
              append the rest <- last mark <- fence visible <- broker answers again for settle_seconds

Ours: Java's clients have nothing like it. Reasons: ``docs/decisions/0042-exact-appends.md``.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin, fetch_consumer_offset
from rmqtools.engine.admin.masters import Masters
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.blocking_form import CLOSE_NOTE, blocking
from rmqtools.engine.connection.background import Background
from rmqtools.engine.exact.own_connection import OwnConnection
from rmqtools.engine.exact.settle import Settlement
from rmqtools.engine.exact.tail import find_last, read_marks
from rmqtools.engine.exact.target_checks import check_producer, check_target
from rmqtools.engine.exact.writer_lock import WriterLock
from rmqtools.engine.producer.encode_send import Outgoing, batch_bytes, property_text
from rmqtools.engine.producer.producer import Producer
from rmqtools.engine.producer.send_answer import Placed, read_answer, refusal
from rmqtools.errors import (
    ClientStateError,
    ConfigError,
    ExactAppendError,
    MessageRejectedError,
    RocketMQError,
    SendError,
    UnknownOutcomeError,
)
from rmqtools.log import get_logger
from rmqtools.model.append_mark import APPEND_MARK, EXACT_GROUP_PREFIX, AppendMark
from rmqtools.model.message import Message
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.parcel import Parcel
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.exact_append import (
    LOCK_SECONDS,
    Answered,
    Since,
    Tail,
    check_gap,
    check_nothing_found,
    check_origin,
    check_place,
    check_positions,
    check_since,
    count_stored,
    first_to_read,
    meaning_of,
)
from rmqtools.policy.packing import cut
from rmqtools.policy.validate import MAX_GROUP_LENGTH, check_batch, check_message, check_name
from rmqtools.protocol.messages.batch import without_first
from rmqtools.protocol.wire.command import RemotingCommand

log = get_logger(__name__)

_RENEW_INTERVAL = LOCK_SECONDS / 6


class ExactAppender(Asynchronous):
    """A writer that stores each message once, in order, in one queue, whatever breaks. New in 0.3.0.

    Each message has a position that only rises. After a crash, continue after :attr:`last_position`: no store
    beside the brokers is needed. One process writes with one ``writer`` name to a queue at a time;
    other producers may write to it, too. Use ``async with``, or call start and close.

    Args:
        producer: a started producer, without ``linger`` and ``enable_trace``; it stays open.
        queue: the queue to write to.
        writer: name of the writer: the same after a restart, and another one for another task.
        origin: what the positions count, such as a queue of another cluster. Stored with every message, and
            compared at the start.
        settle_seconds: how long a broker must answer after a lost connection, before this reads the end of
            its queue: it may still store requests from its buffers. With less, messages may be stored twice.
        is_new: whether this writer has never written to this queue. Only needed if the queue's first messages
            have expired: otherwise a start is refused, because the writer's last message may be among them.

    Raises:
        ConfigError: by the constructor: a setting of the producer, or a value above.
    """

    __module__ = "rmqtools.aio"

    def __init__(
        self,
        producer: Producer,
        queue: MessageQueue,
        *,
        writer: str,
        origin: str = "",
        settle_seconds: float = 10.0,
        is_new: bool = False,
    ) -> None:
        check_producer(producer.config)
        check_name("writer", writer, MAX_GROUP_LENGTH - len(EXACT_GROUP_PREFIX))
        if not origin.isprintable():
            raise ConfigError(f"origin={origin!r}: want text without control characters")
        if not settle_seconds >= 0:
            raise ConfigError(f"settle_seconds={settle_seconds!r}: want 0 or more seconds")
        self._host, self._client, self._config = producer, producer._client, producer.config
        self._encoder = producer._encoder
        self._queue, self._writer, self._origin = queue, writer, origin
        self._settle_seconds, self._is_new = settle_seconds, is_new
        self._group = EXACT_GROUP_PREFIX + writer
        self._wire_group = self._client.wire_topic(self._group)
        self._admin = GroupOffsetAdmin(self._client)
        self._settlement = Settlement(self._client, self._encoder, queue)
        self._own = OwnConnection(self._client, self._settlement)
        self._lock = WriterLock(self._client, queue, self._wire_group)
        self._background = Background()
        self._turn = asyncio.Lock()
        self._state = "new"  # then reserved, ready, unsettled, closed
        self._is_wait_owed = True
        self._boot_before: str | None = None
        self._tail = Tail(None, None, 0)
        self._hint: int | None = None  # the last one that was stored at the broker
        self._since: Since | None = None  # replaces the hint

    @property
    def queue(self) -> MessageQueue:
        """The queue that it writes to."""
        return self._queue

    @property
    def last_position(self) -> int | None:
        """The position of the last message that is stored; None: there is none."""
        return self._tail.position

    @blocking("base")
    async def start(self) -> None:
        """Take the writer's lock and find its last message; errors as of :meth:`resume`."""
        await self.resume()

    async def resume(self) -> int | None:
        """Find out what is stored, and return the last position. Call it after an error or a cancelled call.

        Waits for the answer to a request that is on the wire, up to a minute for the lock of a writer that
        died, and ``settle_seconds`` for late requests of that writer. Waits without limit if the broker stops
        answering after the first requests.

        Returns:
            The position of the last message of this writer; None: there is none. The next append continues
            behind it.

        Raises:
            UnsupportedError: the broker is behind a proxy.
            ConfigError: a static topic, a queue type, or a setting of topic or broker, with which the end of
                a queue cannot be trusted.
            ExactAppendError: another process uses this writer's name, or the last position is not known.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be written.
            RemotingError: no answer to the first requests, for settings of topic and broker.
        """
        async with self._turn:
            if self._state == "closed":
                raise ClientStateError("the appender is closed: make a new one")
            if self._own.has_request and await self._own.answer() is None:
                self._owe_wait()
            await self._take()
            await self._await_visible()
            self._tail = await self._settlement.patiently(self._find_tail)
            self._state = "ready"
            return self._tail.position

    async def _reserve(self) -> int:
        """Take the lock, and return where the queue ends; :meth:`_begin` or :meth:`_take_up` follows."""
        async with self._turn:
            await self._take()
            end = await self._settlement.patiently(lambda: self._admin.max_offset(self._queue))
            self._state = "reserved"
            return end

    def _begin(self, since: Since) -> None:
        """Begin work of which nothing can have been sent: it was decided while this writer had the lock."""
        self._since, self._tail = since, Tail(None, None, since.queue_offset)
        self._is_wait_owed, self._state = False, "ready"

    async def _take_up(self, since: Since) -> int | None:
        """Go on with work that was decided before; as :meth:`resume`."""
        self._since = since
        return await self.resume()

    async def append(self, messages: Sequence[Message], positions: Sequence[int]) -> None:
        """Append messages, and return once they are stored. Waits as long as the broker does not answer.

        Requests have at most ``max_batch_bytes``; some of the messages may be stored when it raises.
        A cancelled call leaves the outcome open: call :meth:`resume`, which returns the last position.

        Args:
            messages: of the queue's topic, without delay or priority.
            positions: of each message, 0 or more; each higher than the one before, and than
                :attr:`last_position`.

        Raises:
            ValueError: positions that do not rise.
            MessageRejectedError: a message is not valid; nothing was sent.
            SendError: the broker refuses the messages: :attr:`last_position` says which are stored.
            ExactAppendError: the queue contradicts what this writer has stored: the broker lost its end, or
                another process uses the writer's name.
            ClientStateError: not started, closed, or interrupted before (then call :meth:`resume`).
        """
        check_positions(positions, count=len(messages), last=self._tail.position)
        for message in messages:
            check_message(message, self._config.max_message_bytes)
            if message.topic != self._queue.topic:
                raise MessageRejectedError(f"topic {message.topic!r}: want that of {self._queue}")
        if messages:
            marked = [
                replace(message, properties={**message.properties, APPEND_MARK: self._mark_text(position)})
                for message, position in zip(messages, positions, strict=True)
            ]
            for first, parcel in self._parcels(marked):
                await self._append_parcel(parcel, positions[first : first + len(parcel)])

    def _mark_text(self, position: int) -> str:
        """Return the property ``RMQTOOLS_MARK`` of a message, for code that encodes messages itself."""
        return str(AppendMark(position, self._writer, self._origin))

    async def _append_parcel(self, parcel: Parcel, positions: Sequence[int]) -> None:
        """Append encoded messages as one request; each has the property of :meth:`_mark_text`.

        Errors as of :meth:`append`.
        """
        async with self._turn:
            self._check_ready()
            check_positions(positions, count=len(parcel), last=self._tail.position)
            while positions:
                stored = await self._try(parcel, positions)
                parcel, positions = _rest(parcel, stored), positions[stored:]

    @blocking("base", note=CLOSE_NOTE)
    async def close(self) -> None:
        """Release the lock, and reset the connection. A request that is on the wire has an open outcome."""
        is_settled = self._state in ("reserved", "ready") and not self._own.has_request
        self._state = "closed"
        self._own.close()
        await self._background.stop()
        if is_settled and self._client.is_open:
            await self._store_hint()
            await self._lock.release()

    async def _take(self) -> None:
        """Check the queue, connect, and take the writer's lock."""
        self._client.check_started()
        self._state = "unsettled"
        await check_target(self._client, self._queue)
        await self._own.open()
        await self._lock.take(waits=True)
        if not self._background.tasks:
            self._background.spawn_repeated("exact_append", _RENEW_INTERVAL, self._keep)

    def _parcels(self, messages: Sequence[Message]) -> Iterator[tuple[int, Parcel]]:
        """Yield requests, and the number of their first message."""
        topic = self._queue.topic
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):  # brokers accept no batches there
            for number, message in enumerate(messages):
                yield number, Parcel(topic=topic, message=message, queue=self._queue)
            return
        check_batch(messages)
        texts = [property_text(message) for message in messages]
        for numbers in cut(batch_bytes(messages, texts), self._config.max_batch_bytes):
            outgoing = self._encoder.encode_batch(messages[numbers.start : numbers.stop])
            yield (
                numbers.start,
                Parcel(topic=topic, body=outgoing.body, msg_ids=outgoing.msg_ids, queue=self._queue),
            )

    def _check_ready(self) -> None:
        if self._state == "ready":
            return
        remedy = {
            "new": "call start() or use it in a with block",
            "reserved": "call start()",
            "closed": "make a new one",
            "unsettled": "an earlier call ended with an open outcome: call resume()",
        }[self._state]
        raise ClientStateError(f"the appender of {self._queue} cannot append: {remedy}")

    async def _try(self, parcel: Parcel, positions: Sequence[int]) -> int:
        """Send a request; return how many of its messages are stored for certain."""
        if not self._own.is_open:
            return await self._settle(positions)
        outgoing = self._encoder.encode_parcel(parcel)
        request = outgoing.request_to(self._queue, self._queue.broker_name, creates_topic=False)
        if self._lock.is_lost:
            self._state = "unsettled"
            raise self._lock.error()
        if not self._lock.age.may_send(self._client.clock.monotonic()):  # this process was paused
            self._owe_wait()
            return await self._settle(positions)
        self._state = "unsettled"
        self._own.start(request)
        answer = await self._own.answer()
        if answer is None:
            self._owe_wait()
            return await self._settle(positions)
        return await self._judge(outgoing, positions, answer)

    async def _judge(self, outgoing: Outgoing, positions: Sequence[int], answer: RemotingCommand) -> int:
        """Return how many messages are stored after an answer."""
        meaning, error = meaning_of(answer.code), refusal(outgoing, answer, self._own.addr)
        if meaning is Answered.STORED:
            try:
                await self._note_stored(read_answer(outgoing, self._queue, answer), positions)
            except UnknownOutcomeError:  # stored where an unreadable answer says
                meaning = Answered.UNKNOWN
            else:
                return len(positions)
        if meaning is Answered.UNKNOWN and (stored := await self._settle(positions)):
            return stored
        self._state = "ready"
        if meaning is Answered.TRY_AGAIN:
            await self._settlement.pause(error)
            return 0
        raise SendError(f"{self._queue} did not take {len(positions)} message(s): {error}") from error

    async def _note_stored(self, placed: Placed, positions: Sequence[int]) -> None:
        """Compare where messages are stored with where they should be."""
        expected, got = self._tail.end, placed.header.queue_offset
        if placed.queue != self._queue:
            raise ExactAppendError(f"messages for {self._queue} were stored in {placed.queue}")
        check_place(self._queue, expected=expected, got=got)
        if got > expected:
            between = lambda: read_marks(self._client, self._queue, expected, got)  # noqa: E731 - called again
            marks = await self._settlement.patiently(between)
            check_gap(self._queue, marks, self._writer, lowest=self._lowest)
        end = got + len(positions)
        self._tail = Tail(positions[-1], end - 1, end)
        self._state = "ready"

    async def _settle(self, positions: Sequence[int]) -> int:
        """Make sure of what is stored of messages whose outcome is open; return how many are."""
        self._state = "unsettled"
        before, begin = self._tail.position, self._tail.end
        await self._own.open()
        await self._lock.take(waits=False)
        await self._await_visible()

        async def look() -> tuple[int, tuple[int, AppendMark] | None]:
            end = await self._admin.max_offset(self._queue)
            check_place(self._queue, expected=begin, got=end)
            last = await find_last(self._client, self._queue, self._writer, begin, end, lowest=self._lowest)
            return end, last

        end, last = await self._settlement.patiently(look)
        queue_offset, found = self._tail.queue_offset, before
        if last is not None:
            check_origin(self._queue, last[1], self._origin)
            queue_offset, found = last[0], last[1].position
        stored = count_stored(self._queue, positions, before=before, found=found)
        log.info("outcome_settled", queue=str(self._queue), stored=stored, of=len(positions))
        self._tail = Tail(found, queue_offset, end)
        self._state = "ready"
        return stored

    def _owe_wait(self) -> None:
        """Note that a request may still arrive, from a connection that is lost or from another writer.

        A broker that was started again has lost it, if the lock says that nobody else has written since.
        """
        is_sole = self._lock.age.may_send(self._client.clock.monotonic()) and not self._is_wait_owed
        self._boot_before = self._own.boot if is_sole else None
        self._is_wait_owed = True

    async def _await_visible(self) -> None:
        """Wait until no earlier request can arrive any more, and all that is stored is visible."""
        if self._is_wait_owed:
            await self._settlement.await_answering(self._settle_seconds, self._boot_before)
            self._is_wait_owed = False
        await self._settlement.pass_fence()

    async def _find_tail(self) -> Tail:
        """Find the last message of this writer, backwards from the queue's end to the hint."""
        queue, admin = self._queue, self._admin
        if self._since is not None:
            return await self._find_since(self._since)
        hint = await fetch_consumer_offset(
            Masters(self._client), self._wire_group, self._client.wire_topic(queue.topic), queue
        )
        begin, end = await admin.min_offset(queue), await admin.max_offset(queue)
        first = first_to_read(queue, min_offset=begin, end=end, hint=hint)
        found = await find_last(self._client, queue, self._writer, first, end)
        if found is None:
            check_nothing_found(queue, self._writer, min_offset=begin, hint=hint, is_new=self._is_new)
            return Tail(None, None, end)
        check_origin(queue, found[1], self._origin)
        return Tail(found[1].position, found[0], end)

    async def _find_since(self, since: Since) -> Tail:
        """Find the last message of this piece of work."""
        queue, begin = self._queue, since.queue_offset
        end = await self._admin.max_offset(queue)
        check_since(queue, begin, min_offset=await self._admin.min_offset(queue), end=end)
        found = await find_last(self._client, queue, self._writer, begin, end, lowest=since.position)
        if found is None:
            return Tail(None, None, end)
        check_origin(queue, found[1], self._origin)
        return Tail(found[1].position, found[0], end)

    @property
    def _lowest(self) -> int:
        return 0 if self._since is None else self._since.position

    async def _keep(self) -> None:
        """Renew the lock, and store where the last message is."""
        await self._lock.renew()
        await self._store_hint()

    async def _store_hint(self) -> None:
        """Store the offset of the last message as the group's: a start reads backwards no further."""
        offset = self._tail.queue_offset
        if self._since is not None or offset is None or offset == self._hint:
            return
        try:
            await self._admin.update_consumer_offset(self._group, self._queue, offset)
            self._hint = offset
        except RocketMQError as error:
            log.warning("hint_not_stored", queue=str(self._queue), reason=str(error))


def _rest(parcel: Parcel, stored: int) -> Parcel:
    """Return a parcel without its first messages."""
    if parcel.message is not None or not stored:
        return parcel
    return replace(parcel, body=without_first(parcel.body, stored), msg_ids=parcel.msg_ids[stored:])
