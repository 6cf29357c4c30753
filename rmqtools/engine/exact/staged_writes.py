"""Rows staged by many processes, and stored in a topic by one: decided by a record, then copied.

    tasks -> staging topic -> ranges -> commit(number, ranges)
                                          |  the locks of all target queues
                                          |  decide: the first record of the number counts
                                          v
                                        exact appenders, one for each queue -> "copied"

A commit that is called again finds its record, finishes the copy, and compares the rows. Nobody can have
copied anything before the record was there, so a commit that wrote the record, with all locks, need not look.
Reasons: ``docs/decisions/0048-staged-writes.md``.
"""

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from rmqtools.config.client import check_config
from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin
from rmqtools.engine.admin.masters import Masters
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.blocking_form import CLOSE_NOTE, blocking
from rmqtools.engine.exact.awaiting import until_there
from rmqtools.engine.exact.copy_lane import MARK, CopyLane, CopyPortion, run_all
from rmqtools.engine.exact.decision_log import READABLE_TIMEOUT
from rmqtools.engine.exact.queue_writer import QueueWriter
from rmqtools.engine.exact.staged_topics import PAUSE, StagedTopics
from rmqtools.engine.exact.tail import WriterMemory
from rmqtools.engine.exact.target_checks import check_producer
from rmqtools.engine.exact.writer_decisions import WriterDecisions
from rmqtools.engine.producer.producer import Producer
from rmqtools.errors import (
    ConfigError,
    DataLossError,
    ExactAppendError,
    MessageRejectedError,
    RemotingError,
    RemotingTimeoutError,
    RocketMQError,
    SendError,
)
from rmqtools.log import get_logger
from rmqtools.model.append_mark import EXACT_GROUP_PREFIX
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.model.result import Outcome
from rmqtools.model.staged import StagedCommit, StagedQueue, StagedStatus
from rmqtools.policy.exact_append import Since
from rmqtools.policy.mirror import kept_properties
from rmqtools.policy.staged import (
    COPIED,
    GIVEN_UP,
    BatchDecision,
    by_queue,
    check_same,
    check_targets,
    lost_decision,
    rest_of,
    rows_up_to,
)
from rmqtools.policy.validate import MAX_GROUP_LENGTH, check_name
from rmqtools.protocol.messages.copied import StoredParts

log = get_logger(__name__)

_TARGET_BYTES = 8  # of the target's hash in the names of writers


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one call of ``commit``, by target queue; ``token`` marks its records.

    ``copied``: how many of them each try has copied.
    """

    batch: int
    ranges: Mapping[MessageQueue, list[QueueRange]]
    digest: int | None
    keep_first: bool
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    copied: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(len(each) for ranges in self.ranges.values() for each in ranges)


class StagedLane(CopyLane):
    """The copy of a commit's rows to one queue.

    Attributes:
        writer: the writer of that queue.
        copied: rows that were copied.
    """

    def __init__(
        self, producer: Producer, staging: str, target: MessageQueue, *, name: str, settle_seconds: float
    ) -> None:
        source = MessageQueue(staging, target.broker_name, target.queue_id)
        self.writer = QueueWriter(
            producer,
            target,
            writer=name,
            origin=f"{staging}/{target.broker_name}/{target.queue_id}",
            settle_seconds=settle_seconds,
        )
        request_bytes = producer.config.max_batch_bytes
        super().__init__(producer._client, source, self.writer, request_bytes=request_bytes)
        self._rest: list[tuple[int, int]] = []
        self.copied = 0

    def begin(self, part: StagedQueue) -> None:
        """Begin with the first row: nothing can have been sent."""
        self.writer.begin(Since(part.since, part.ranges[0].begin))
        self._rest = rest_of(part, None)

    async def take_up(self, part: StagedQueue) -> None:
        """Find out what is copied already; errors as of :meth:`QueueWriter.resume`."""
        following = await self.writer.resume(Since(part.since, part.ranges[0].begin))
        self._rest = rest_of(part, None if following is None else following - 1)

    async def copy(self) -> None:
        """Copy the rest; errors as of :meth:`QueueWriter.append`.

        Raises:
            DataLossError: rows expired before they were copied.
        """
        await self._copy(self._rest)

    def _copied_properties(self, parts: StoredParts) -> bytes | None:
        kept, _ = kept_properties(parts.properties)
        mark = self.writer.mark_text(parts.queue_offset).encode()
        kept.append(b"%s\x01%s\x02" % (MARK, mark))
        return b"\x02".join(kept)

    def _passed(self, portion: CopyPortion) -> None:
        self.copied += len(portion.positions)


class StagedWrites(Asynchronous):
    """Stores rows that many processes have staged in a topic: each row of a commit once, and no other row.

    Processes send rows to the staging topic and report the offset of each acknowledged row. One process
    commits: its decision for a number is final. If a commit is called again, also by another process, it
    only finishes the copy, and compares the rows. Rows of a queue keep their order. Use ``async with``, or
    call start and close. New in 0.3.0.

    Args:
        producer: a started producer, without ``linger`` and ``enable_trace``; it stays open.
        topic: the topic that gets the rows.
        staging_topic: a topic for staged rows alone; :meth:`prepare` makes it.
        writer: name of the write, the same after a restart, and another one for another write. Writes to
            another topic may have the same name.
        settle_seconds: as of :class:`ExactAppender`.
        is_recurring: whether this writer has more commits than one. Then brokers keep the number of the last
            one, and where it was decided, as offsets of a group, also when the decision has expired; a start
            reads no earlier decisions. Without it, a commit without rows decides nothing.

    Raises:
        ConfigError: by the constructor: a setting of the producer, or a value above.
    """

    __module__ = "rmqtools.aio"

    def __init__(
        self,
        producer: Producer,
        *,
        topic: str,
        staging_topic: str,
        writer: str,
        settle_seconds: float = 10.0,
        is_recurring: bool = True,
    ) -> None:
        check_config(type(self).__name__, producer, Producer)
        check_producer(producer.config)
        check_name("writer", writer, MAX_GROUP_LENGTH - len(EXACT_GROUP_PREFIX) - 2 * _TARGET_BYTES - 1)
        self._producer = self._host = producer
        self._client = producer._client
        target = blake2b(topic.encode(), digest_size=_TARGET_BYTES).hexdigest()
        self._names, self._name = {"writer": writer, "target": topic}, f"{writer}-{target}"
        self._settle_seconds, self._is_recurring = settle_seconds, is_recurring
        self._topics = StagedTopics(self._client, topic, staging_topic)
        self._admin = GroupOffsetAdmin(self._client)
        self._decisions = WriterDecisions(
            producer, self._topics, self._name, names=self._names, is_recurring=is_recurring
        )
        self._turn = asyncio.Lock()

    @blocking("base")
    async def start(self) -> None:
        """Check that the producer is started."""
        self._client.check_started()

    async def prepare(self, *, longest_outage: float = 24 * 3600.0) -> None:
        """Make the missing topics, and check that the target can be written to exactly.

        The staging topic gets the queues of the target on each broker; of those that the target does not
        have any more, staged rows can still be read. Beside it there is
        ``RMQTOOLS_DECISIONS-<staging_topic>``.

        Args:
            longest_outage: seconds after which a commit must still be possible to finish; compared with how
                long brokers keep messages, if their settings show it.

        Raises:
            ConfigError: a target whose end cannot be trusted (see :meth:`ExactAppender.resume`), a broker
                that keeps messages for less than ``longest_outage``, or a staging topic of version 0.3.0.
            UnsupportedError: the broker is behind a proxy.
            TopicNotFoundError, PermissionDeniedError: there is no such target, or it may not be written.
            RemotingError: no answer within ``request_timeout``.
        """
        await self._topics.prepare(longest_outage=longest_outage)

    async def commit(
        self, batch: int, ranges: Sequence[QueueRange], *, digest: int | None = None, keep_first: bool = False
    ) -> StagedCommit:
        """Decide which rows count for a number, and return when all of them are stored in the target.

        The first call with a number decides. Later calls, also of other processes, finish the copy, and
        succeed if they have the same rows. May be called again after every error and every crash. Waits as
        long as a broker is down or does not answer, and up to a minute for the lock of a process that died.

        Args:
            batch: number of the commit, 0 or more; it rises.
            ranges: acknowledged rows in queues of the staging topic.
            digest: a number below 2**128 that depends on the rows, and not on their order, as
                ``SendReport.digest``; the same for the same rows. None: rows are compared by their number.
            keep_first: whether a call with other rows succeeds and drops them, if no later commit was
                decided: for rows with other values at each run. If rows were added meanwhile, they are lost.

        Raises:
            MessageRejectedError: a negative number, or more ranges than a message can hold.
            ConfigError: the target lacks a queue, its end cannot be trusted, or the topic of decisions has
                been missing for a minute.
            DataLossError: decided rows have expired in the staging topic, or were lost with its broker:
                :meth:`give_up` ends the commit without them.
            ExactAppendError: the commit was decided with other rows; its decision was lost; another process
                uses this writer's name; or marks in the target contradict the decision.
            SendError: a broker refuses a row or a record.
        """
        if batch < 0:
            raise MessageRejectedError(f"commit {batch}: want a number from 0 on")
        rows = _Rows(batch, by_queue(ranges, self._topics.target), digest, keep_first)
        async with self._turn:
            return await until_there(
                lambda: self._try_commit(rows),
                partial(self._is_away, rows),
                event="commit_waits",
                pause=PAUSE,
                **self._names,
                batch=batch,
            )

    async def _try_commit(self, rows: _Rows) -> StagedCommit:
        last = await self._decisions.read()
        if last is None and not rows.count and not self._is_recurring:
            return StagedCommit(batch=rows.batch, rows=0, copied=0, is_first=True)
        async with AsyncExitStack() as opened:
            if last is None or rows.batch > last:
                decided, lanes = await self._decide(opened, rows)
            else:
                decided, lanes = await self._take_up(opened, await self._decisions.find(rows.batch, last), {})
            try:
                await run_all(*(lane.copy() for lane in lanes))
            finally:
                rows.copied.append(sum(lane.copied for lane in lanes))
            await self._await_readable({lane.writer.queue: lane.writer.tail.end for lane in lanes})
        if not decided.end:
            await self._decisions.end(rows.batch, COPIED)
        done = StagedCommit(
            batch=rows.batch,
            rows=decided.rows,
            copied=sum(rows.copied),
            is_first=decided.token == rows.token,
            is_given_up=decided.end == GIVEN_UP,
        )
        if not done.is_first and not done.is_given_up:
            self._compare(decided, rows)
        log.info("staged_commit", **self._names, batch=rows.batch, copied=done.copied, is_first=done.is_first)
        return done

    async def _is_away(self, rows: _Rows, error: RocketMQError) -> bool:
        """Return whether a broker of a commit is down: it does not answer, or no name server lists it."""
        if isinstance(error, ExactAppendError):
            return False
        if isinstance(error, RemotingError) or (
            isinstance(error, SendError)
            and error.attempts
            and all(attempt.outcome is not Outcome.REFUSED for attempt in error.attempts)
        ):
            return True
        names = {queue.broker_name for queue in rows.ranges}
        if (queue := self._decisions.queue) is not None:
            names.add(queue.broker_name)
        try:
            return not names <= (await Masters(self._client).addrs()).keys()
        except RemotingError:
            return False

    async def give_up(self, batch: int) -> None:
        """End a commit that cannot be finished: later calls of :meth:`commit` with this number copy nothing.

        Rows that are copied already stay. First end the processes that commit with this writer's name.

        Args:
            batch: the last commit that was decided; earlier ones are finished.

        Raises:
            ConfigError: it is not the last one, or nothing is decided.
        """
        last, known = await self._decisions.read(), self._decisions.last
        if last != batch:
            raise ConfigError(
                f"there is no commit {batch} of {self._names['writer']!r} to give up: the last one that was "
                f"decided is {last}"
            )
        if known is None or known.batch != batch:  # its record is lost
            lost = BatchDecision(batch=batch, after=batch - 1, digest=None, by="", parts=[], token="lost")
            await self._decisions.decide(lost)
        await self._decisions.end(batch, GIVEN_UP)
        log.warning("staged_commit_given_up", **self._names, batch=batch)

    async def status(self) -> StagedStatus:
        """Return the progress of the last commit of this writer."""
        staged = 0
        for queue in await self._admin.fetch_subscribe_queues(self._topics.staging):
            staged += await self._admin.max_offset(queue) - await self._admin.min_offset(queue)
        number, last = await self._decisions.read(), self._decisions.last
        if last is None or last.batch != number:  # its record has expired, or was lost
            return StagedStatus(batch=number, staged=staged, decided=0, copied=0, is_finished=number is None)
        is_copied = last.end == COPIED
        return StagedStatus(
            batch=last.batch,
            staged=staged,
            decided=last.rows,
            copied=sum([part.rows if is_copied else await self._copied(part) for part in last.parts]),
            is_finished=bool(last.end),
        )

    @blocking("base", note=CLOSE_NOTE)
    async def close(self) -> None:
        """Do nothing: each commit releases what it has taken. The producer stays open."""

    async def _decide(self, opened: AsyncExitStack, rows: _Rows) -> tuple[BatchDecision, list[StagedLane]]:
        """Decide with all locks; return what counts."""
        own = rows.ranges
        check_targets(own, await self._topics.target_queues(), self._topics.target, is_decided=False)
        await self._await_staged(rows.batch, own.values())
        lanes = {queue: self._lane(opened, queue) for queue in own}
        ends = await asyncio.gather(*(lane.writer.reserve() for lane in lanes.values()))
        last = await self._decisions.read()  # another process may have noted a number and lost its decision
        if last is not None and rows.batch <= last:
            return await self._take_up(opened, await self._decisions.find(rows.batch, last), lanes)
        parts = [
            StagedQueue(ranges=own[queue], target=queue, since=end)
            for queue, end in zip(own, ends, strict=True)
        ]
        wanted = BatchDecision(
            batch=rows.batch,
            after=last,
            digest=rows.digest,
            by=self._client.client_id,
            parts=parts,
            token=rows.token,
        )
        decided = await self._decisions.decide(wanted)
        if decided.token != rows.token or not all(lane.writer.has_lock for lane in lanes.values()):
            return await self._take_up(opened, decided, lanes)
        await self._decisions.store_place(decided)
        for part in decided.parts:
            lanes[part.target].begin(part)
        return decided, [*lanes.values()]

    async def _take_up(
        self, opened: AsyncExitStack, decided: BatchDecision, reserved: Mapping[MessageQueue, StagedLane]
    ) -> tuple[BatchDecision, list[StagedLane]]:
        """Find out what is copied of rows that were decided before; a commit that ended needs nothing.

        Another process may have ended it until all locks are taken, and none can after that.
        """
        if decided.end:
            return decided, []
        present = await self._topics.target_queues()
        wanted = [part.target for part in decided.parts]
        check_targets(wanted, present, self._topics.target, is_decided=True)
        await self._await_staged(decided.batch, [part.ranges for part in decided.parts])
        lanes = {each: reserved.get(each) or self._lane(opened, each) for each in wanted}
        await run_all(*(lanes[part.target].take_up(part) for part in decided.parts))
        last = await self._decisions.read()
        found = await self._decisions.find(decided.batch, decided.batch if last is None else last)
        if found.token != decided.token:
            raise lost_decision(decided.batch, found.batch, **self._names)
        if found.end:
            return found, []
        await self._decisions.store_place(found)
        return found, [*lanes.values()]

    def _compare(self, decided: BatchDecision, rows: _Rows) -> None:
        """Refuse rows that are not those that were decided, unless the first ones are to be kept."""
        last = self._decisions.last
        assert last is not None  # what was found is there
        try:
            check_same(decided, rows.count, rows.digest, last=last.batch, **self._names)
        except ExactAppendError as error:
            if not rows.keep_first or decided.batch != last.batch:
                raise
            log.warning(
                "first_rows_kept", **self._names, batch=rows.batch, dropped=rows.count, reason=str(error)
            )

    async def _await_staged(self, batch: int, ranges: Iterable[Sequence[QueueRange]]) -> None:
        """Wait until rows can be read; refuse to copy some of them if others are gone."""
        for parts in ranges:
            queue, begin, end = parts[0].queue, parts[0].begin, parts[-1].end
            lowest = await self._admin.min_offset(queue)
            if lowest > begin:
                raise DataLossError(
                    f"{queue} begins at offset {lowest}: staged rows from {begin} on have expired, so the "
                    f"commit {batch} cannot be finished; give_up ends it without its missing rows"
                )
            try:
                await self._admin.await_readable({queue: end}, timeout=READABLE_TIMEOUT)
            except RemotingTimeoutError as error:
                raise DataLossError(
                    f"staged rows of commit {batch} up to offset {end} cannot be read ({error}): their "
                    "broker has lost them or does not answer; call commit again when it does, or give_up to "
                    "go on without them"
                ) from error

    async def _await_readable(self, ends: Mapping[MessageQueue, int]) -> None:
        try:
            await self._admin.await_readable(ends, timeout=READABLE_TIMEOUT)
        except RocketMQError as error:  # the rows are stored
            log.warning("rows_not_yet_readable", reason=str(error))

    async def _copied(self, part: StagedQueue) -> int:
        """Return how many rows are in the target."""
        memory = WriterMemory(self._client, part.target, self._name)
        begin, end = await memory.bounds()
        found = await memory.scan(max(part.since, begin), end, lowest=part.ranges[0].begin)
        return 0 if found.last is None else rows_up_to(part, found.last[1].position)

    def _lane(self, opened: AsyncExitStack, queue: MessageQueue) -> StagedLane:
        """Return the copy to a target queue, which is closed with ``opened``."""
        lane = StagedLane(
            self._producer,
            self._topics.staging,
            queue,
            name=self._name,
            settle_seconds=self._settle_seconds,
        )
        opened.push_async_callback(lane.writer.close)
        return lane
