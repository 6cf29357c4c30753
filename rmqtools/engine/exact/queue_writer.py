"""The one writer of a queue: one request on the wire, a lock, and the queue's end as its memory.

    append -> lock renewed lately? -> write the request -> its answer, however late
                                                             |  connection lost
                                                             v
              append the rest <- last mark <- fence visible <- broker answers again for settle_seconds

A broker's lock is no fence. Brokers accept sends without it, forget it when they start again, keep it for
60 s after its holder died, and grant it to the same client id from any connection. So the id is random, and
the lock is renewed all the time; a writer whose lock is old has no connection any more.

Ours: Java's clients have nothing like it. Reasons: ``docs/decisions/0042-exact-appends.md``.

The request names its own topic as the default topic: with TBW102, a broker would make a deleted topic anew.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.connection.background import Background
from rmqtools.engine.exact.own_broker import OwnBroker
from rmqtools.engine.exact.tail import LAST, LONGEST_KIND, NEXT, SEEN, WriterMemory
from rmqtools.engine.exact.target_checks import check_producer, check_target
from rmqtools.engine.group.queue_locks import QueueLocks
from rmqtools.engine.producer.encode_send import Outgoing
from rmqtools.engine.producer.producer import Producer
from rmqtools.engine.producer.send_answer import Placed, read_answer, refusal
from rmqtools.errors import (
    ClientStateError,
    ConfigError,
    ExactAppendError,
    RocketMQError,
    SendError,
    UnknownOutcomeError,
)
from rmqtools.log import get_logger
from rmqtools.model.append_mark import EXACT_GROUP_PREFIX, AppendMark
from rmqtools.model.encoded_batch import EncodedBatch
from rmqtools.model.queue import MessageQueue
from rmqtools.number_of import number_of
from rmqtools.policy.exact_append import (
    LOCK_SECONDS,
    Answered,
    LockAge,
    Since,
    Tail,
    check_place,
    check_positions,
    meaning_of,
)
from rmqtools.policy.validate import MAX_GROUP_LENGTH, check_name
from rmqtools.protocol.messages.batch import without_first
from rmqtools.protocol.wire.command import RemotingCommand

T = TypeVar("T")
log = get_logger(__name__)

_RENEW_INTERVAL = LOCK_SECONDS / 6
_PAUSE = 0.5  # seconds between requests for a lock that another writer has
_PATIENCE = LOCK_SECONDS + 15.0  # seconds: a dead writer's lock ends before
_LONGEST_WRITER = MAX_GROUP_LENGTH - len(EXACT_GROUP_PREFIX) - LONGEST_KIND


class QueueWriter:
    """A writer that stores each of its messages once, in order, in one queue, whatever breaks.

    Attributes:
        queue: the queue that it writes to.
        memory: what it has stored in the queue, and keeps at its broker.
        tail: the end of the queue.
        most_bytes: of the body of a request to it.
    """

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
        check_name("writer", writer, _LONGEST_WRITER)
        if not origin.isprintable():
            raise ConfigError(f"origin={origin!r}: want text without control characters")
        if not settle_seconds >= 0:
            raise ConfigError(f"settle_seconds={settle_seconds!r}: want 0 or more seconds")
        self._client, self._encoder = producer._client, producer._encoder
        self.queue, self.most_bytes = queue, producer.config.max_message_bytes
        self._writer = writer
        self._origin = origin
        self._settle_seconds, self._is_new = settle_seconds, is_new
        self.memory = WriterMemory(self._client, queue, writer)
        self._admin = QueueAdmin(self._client)
        self._broker = OwnBroker(self._client, self._encoder, queue)
        group = self._client.wire_topic(self.memory.group)
        self._locks = QueueLocks(self._client, group, f"{self._client.client_ip}@{uuid.uuid4().hex}")
        self._age = LockAge()
        self._alarm: asyncio.TimerHandle | None = None  # resets the connection when the lock is old
        self._background = Background()
        self._turn = asyncio.Lock()
        self._state = "new"  # then reserved, ready, unsettled, closed
        self._is_wait_owed = True  # a request may still arrive, from a lost connection or another writer
        self.tail = Tail(None, None, 0)
        self._since: Since | None = None  # replaces the numbers

    @property
    def waits_for(self) -> str:
        """The reason of the wait that is under way; empty: none."""
        return self._broker.waits_for

    @property
    def has_lock(self) -> bool:
        """True if the lock was renewed lately: no other writer has had it since it was taken."""
        return self._age.may_send(self._client.clock.monotonic())

    async def resume(self, since: Since | None = None) -> int | None:
        """Find out what is stored, and return the next position. Call it after an error or a cancelled call.

        ``since``: where its present work begins, if that is known from elsewhere.

        Waits and errors: see :meth:`rmqtools.aio.ExactAppender.resume`.
        """
        async with self._turn:
            if self._state == "closed":
                raise ClientStateError("the appender is closed: make a new one")
            self._since = since or self._since
            if self._broker.has_request and await self._broker.answer() is None:
                self._is_wait_owed = True
            await self._prepare()
            self.tail = await self._when_certain(lambda: self.look(self._since), waits=True)
            return self.tail.next_position

    async def look(self, since: Since | None = None) -> Tail:
        """Return what is visible now of the writer's messages; without its lock, more may follow."""
        return await self.memory.find_tail(origin=self._origin, is_new=self._is_new, since=since)

    async def reserve(self) -> int:
        """Take the lock, and return where the queue ends; :meth:`begin` or :meth:`resume` follows."""
        async with self._turn:
            await self._prepare()
            await self._take_lock(waits=True)
            end = await self._broker.patiently(lambda: self._admin.max_offset(self.queue))
            self._state = "reserved"
            return end

    def begin(self, since: Since) -> None:
        """Begin work of which nothing can have been sent: it was decided while this writer had the lock."""
        self._since, self.tail = since, Tail(None, None, since.queue_offset, since.position)
        self._is_wait_owed, self._state = False, "ready"

    def pass_to(self, position: int, seen_ms: int | None = None) -> None:
        """Note that all before a position is done; ``seen_ms``: when its source stored the last of it."""
        self.memory.put(SEEN, seen_ms)
        self.memory.put(NEXT, position)
        self.tail = replace(self.tail, next_position=max(position, self.tail.next_position or 0))

    async def keep_numbers(self) -> None:
        """Store what a start needs; waits for the broker."""
        await self._broker.patiently(self._store_numbers)

    async def number(self, kind: str) -> int | None:
        """Return a number that is stored; waits for the broker."""
        return await self._broker.patiently(lambda: self.memory.fetch(kind))

    def mark_text(self, position: int, source_ms: int | None = None) -> str:
        """Return the property ``RMQTOOLS_MARK`` of a message."""
        return str(AppendMark(position, self._writer, self._origin, source_ms))

    async def append(self, batch: EncodedBatch, positions: Sequence[int]) -> None:
        """Append encoded messages as one request; each has the property of :meth:`mark_text`.

        Errors: see :meth:`rmqtools.aio.ExactAppender.append`.
        """
        async with self._turn:
            self._check_ready()
            check_positions(positions, count=len(batch), next_position=self.tail.next_position)
            while positions:
                stored = await self._try(batch, positions)
                positions = positions[stored:]
                if stored and positions:
                    body = without_first(batch.body, stored)
                    batch = replace(batch, body=body, msg_ids=batch.msg_ids[stored:])

    async def close(self) -> None:
        """Release the lock, and reset the connection. A request that is on the wire has an open outcome."""
        state = self._state
        await self.abandon()
        if state != "closed" and self._client.is_open:
            if state == "ready":
                await self._keep_numbers()
            await self._locks.unlock([self.queue])  # if that fails, it ends by itself

    async def abandon(self) -> None:
        """End as a process does that dies: reset the connection, and leave the lock."""
        self._state = "closed"
        self._broker.close()
        await self.pause()

    async def pause(self) -> None:
        """Stop renewing the lock."""
        if self._alarm is not None:
            self._alarm.cancel()
        await self._background.stop()

    async def keep(self) -> None:
        """Renew the lock, and store the numbers.

        An old lock is not renewed here: another writer may have had it since. The next append takes it anew,
        and looks at the queue's end first.
        """
        if not self.has_lock:
            return
        if await self._request_lock() is False:
            self._lose_lock()
            log.error("writer_lock_lost", group=self.memory.group, queue=str(self.queue))
        elif self._state == "ready":
            await self._keep_numbers()

    async def _keep_numbers(self) -> None:
        try:
            await self._store_numbers()
        except RocketMQError as error:
            log.warning("position_not_stored", queue=str(self.queue), reason=str(error))

    async def _store_numbers(self) -> None:
        if self._since is None:
            self.memory.put(LAST, self.tail.queue_offset)
            await self.memory.store()

    async def _prepare(self) -> None:
        """Check the queue."""
        self._client.check_started()
        self._state = "unsettled"
        await check_target(self._client, self.queue)

    async def _take_lock(self, *, waits: bool) -> None:
        """Connect, and take the lock, once the broker answers; ``waits``: for a writer that died and has it.

        Raises:
            ExactAppendError: another writer has it.
        """
        await self._broker.open()
        now, refused_at = self._client.clock.monotonic, None
        while not (granted := await self._request_lock()):
            if granted is False:
                if refused_at is None:
                    refused_at = now()
                    log.info("writer_lock_awaited", group=self.memory.group, queue=str(self.queue))
                if not waits or now() - refused_at > _PATIENCE:
                    self._lose_lock()
                    raise ExactAppendError(
                        f"another writer has the lock of group {self.memory.group!r} on {self.queue}: end "
                        "one of the two"
                    )
                self._broker.waits_for = f"the lock of group {self.memory.group!r}, which another writer has"
            await asyncio.sleep(_PAUSE)
        self._broker.waits_for = ""
        if not self._background.tasks:
            self._background.spawn_repeated("queue_writer", _RENEW_INTERVAL, self.keep)

    async def _request_lock(self) -> bool | None:
        """Return whether the lock is granted; None: no answer.

        Raises:
            ClientStateError: the writer was closed meanwhile: what it takes now, nobody would release.
        """
        self._broker.check_open()
        now, loop = self._client.clock.monotonic, asyncio.get_running_loop()
        asked_at = now()
        granted = (await self._locks.lock([self.queue])).get(self.queue)
        self._broker.check_open()
        if granted:
            self._age.renewed(asked_at)
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm = loop.call_later(self._age.seconds_left(now()), self._broker.abort)
        return granted

    def _lose_lock(self) -> None:
        self._age.lost()
        self._broker.abort()

    def _check_ready(self) -> None:
        if self._state == "ready":
            return
        remedy = {
            "new": "call start() or use it in a with block",
            "reserved": "call start()",
            "closed": "make a new one",
            "unsettled": "an earlier call ended with an open outcome: call resume()",
        }[self._state]
        raise ClientStateError(f"the appender of {self.queue} cannot append: {remedy}")

    async def _try(self, batch: EncodedBatch, positions: Sequence[int]) -> int:
        """Send a request; return how many of its messages are stored for certain."""
        is_late = not self.has_lock  # it was paused, or cut off
        if is_late or not self._broker.is_open:
            self._is_wait_owed |= is_late
            return await self._settle(positions)
        outgoing = self._encoder.complete(batch)
        request = outgoing.request_to(self.queue, self.queue.broker_name, creates_topic=False)
        self._state = "unsettled"
        self._broker.start(request)
        answer = await self._broker.answer()
        if answer is None:
            self._is_wait_owed = True
            return await self._settle(positions)
        return await self._judge(outgoing, positions, answer)

    async def _judge(self, outgoing: Outgoing, positions: Sequence[int], answer: RemotingCommand) -> int:
        """Return how many messages are stored after an answer."""
        meaning = meaning_of(answer.code, answer.remark)
        error = refusal(outgoing, answer, self._broker.addr)
        if meaning is Answered.STORED:
            try:
                await self._note_stored(read_answer(outgoing, self.queue, answer), positions)
            except UnknownOutcomeError:  # stored where an unreadable answer says
                meaning = Answered.UNKNOWN
            else:
                return len(positions)
        if meaning is Answered.UNKNOWN and (stored := await self._settle(positions)):
            return stored
        self._state = "ready"
        if meaning is Answered.TRY_AGAIN:
            await self._broker.pause(error)
            return 0
        raise SendError(
            f"{self.queue} did not take {number_of(len(positions), 'message')}: {error}"
        ) from error

    async def _note_stored(self, placed: Placed, positions: Sequence[int]) -> None:
        """Compare where messages are stored with where they should be."""
        expected, got = self.tail.end, placed.header.queue_offset
        if placed.queue != self.queue:
            raise ExactAppendError(f"messages for {self.queue} were stored in {placed.queue}")
        check_place(self.queue, expected=expected, got=got)
        if got > expected:
            before, lowest = self.tail, self._lowest
            await self._broker.patiently(lambda: self.memory.check_others(before, got, lowest=lowest))
        end = got + len(positions)
        self.tail = Tail(positions[-1], end - 1, end, positions[-1] + 1)
        self._state = "ready"

    async def _settle(self, positions: Sequence[int]) -> int:
        """Make sure of what is stored of messages whose outcome is open; return how many are."""
        before, memory = self.tail, self.memory
        self.tail, stored = await self._when_certain(
            lambda: memory.settle(before, positions, origin=self._origin, lowest=self._lowest), waits=False
        )
        log.info("outcome_settled", queue=str(self.queue), stored=stored, of=len(positions))
        return stored

    async def _when_certain(self, look: Callable[[], Awaitable[T]], *, waits: bool) -> T:
        """Take the lock, and look at the queue when no request can arrive and all is visible."""
        self._state = "unsettled"
        await self._take_lock(waits=waits)
        if self._is_wait_owed:
            await self._broker.await_answering(self._settle_seconds)
            self._is_wait_owed = False
        await self._broker.pass_fence()
        found = await self._broker.patiently(look)
        self._state = "ready"
        return found

    @property
    def _lowest(self) -> int:
        return 0 if self._since is None else self._since.position
