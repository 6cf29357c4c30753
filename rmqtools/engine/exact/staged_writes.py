"""Rows staged by many processes, and stored in a topic by one: decided by a record, then copied.

    tasks -> staging topic -> ranges -> commit(key, ranges)
                                          |  the locks of all target queues
                                          |  decide: the first record of the key counts
                                          |  a copy of it on each target broker
                                          v
                                        exact appenders, one for each queue -> "copied"

A commit that is called again finds its record, and only finishes the copy. Nobody can have copied anything
before the record was there, so a commit that wrote the record, with all locks, need not look.
Reasons: ``docs/decisions/0048-staged-writes.md``.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack

from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin, fetch_consumer_offset
from rmqtools.engine.admin.masters import Masters
from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.blocking_form import CLOSE_NOTE, blocking
from rmqtools.engine.exact.appender import ExactAppender
from rmqtools.engine.exact.copy_lane import run_all
from rmqtools.engine.exact.first_records import READABLE_TIMEOUT, FirstRecords
from rmqtools.engine.exact.staged_lane import StagedLane
from rmqtools.engine.exact.staged_topics import PAUSE, StagedTopics
from rmqtools.engine.exact.tail import find_last
from rmqtools.engine.exact.target_checks import check_producer
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
from rmqtools.policy.staged import (
    COPIED,
    GIVEN_UP,
    by_queue,
    check_targets,
    decode_record,
    encode_record,
    rows_up_to,
)
from rmqtools.policy.validate import MAX_GROUP_LENGTH, check_name

log = get_logger(__name__)

_DONE = b"1"


class StagedWrites(Asynchronous):
    """Stores rows that many processes have staged in a topic: each row of a commit once, and no other row.

    Processes send rows to the staging topic and report the offset of each acknowledged row. One process
    commits: its decision for a key is final. If a commit is called again, also by another process, it only
    finishes the copy. Rows of a queue keep their order. Use ``async with``, or call start and close. New in
    0.3.0.

    Args:
        producer: a started producer, without ``linger`` and ``enable_trace``; it stays open.
        topic: the topic that gets the rows.
        staging_topic: a topic for staged rows alone; :meth:`prepare` makes it.
        writer: name of the write, the same after a restart, and another one for another write.
        settle_seconds: as of :class:`ExactAppender`.
        is_recurring: whether this writer commits again and again. Then the offset of its last decision is
            stored as a group's offset, so that a start reads no earlier decisions. An earlier key is then not
            found any more, and its rows would be stored again.

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
        check_producer(producer.config)
        check_name("writer", writer, MAX_GROUP_LENGTH - len(EXACT_GROUP_PREFIX))
        self._producer = self._host = producer
        self._client, self._writer = producer._client, writer
        self._settle_seconds, self._is_recurring = settle_seconds, is_recurring
        self._topics = StagedTopics(self._client, topic, staging_topic)
        self._queues = QueueAdmin(self._client)
        self._records: dict[MessageQueue, FirstRecords] = {}
        self._turn = asyncio.Lock()

    @blocking("base")
    async def start(self) -> None:
        """Check that the producer is started."""
        self._client.check_started()

    async def prepare(self, *, longest_outage: float = 24 * 3600.0) -> None:
        """Make the missing topics, and check that the target can be written to exactly.

        The staging topic gets as many queues on each broker as the target has. Beside it there are
        ``<staging_topic>-decisions`` and ``<staging_topic>-decided``.

        Args:
            longest_outage: seconds after which a commit must still be possible to finish; compared with how
                long brokers keep messages, if their settings show it.

        Raises:
            ConfigError: a target whose end cannot be trusted (see :meth:`ExactAppender.resume`), or a broker
                that keeps messages for less than ``longest_outage``.
            UnsupportedError: the broker is behind a proxy.
            TopicNotFoundError, PermissionDeniedError: there is no such target, or it may not be written.
            RemotingError: no answer within ``request_timeout``.
        """
        await self._topics.prepare(longest_outage=longest_outage)

    async def commit(self, key: str, ranges: Sequence[QueueRange]) -> StagedCommit:
        """Decide which rows count for a key, and return when all of them are stored in the target.

        The first call with a key decides. Later calls, also of other processes, ignore their ranges and
        finish the copy. May be called again after every error and every crash. Waits as long as a broker is
        down or does not answer, and up to a minute for the lock of a process that died.

        Args:
            key: a word without spaces; keys of a writer are committed one after the other.
            ranges: acknowledged rows in queues of the staging topic.

        Raises:
            MessageRejectedError: a key with spaces, or more ranges than a message can hold.
            ConfigError: the target lacks a queue, its end cannot be trusted, or the topic of decisions has
                been missing for a minute.
            DataLossError: decided rows have expired in the staging topic, or were lost with its broker:
                :meth:`give_up` ends the commit without them.
            ExactAppendError: another process uses this writer's name, or marks in the target contradict the
                decision.
            SendError: a broker refuses a row or a record.
        """
        name = self._name(key)
        is_logged = False
        async with self._turn:
            while True:
                try:
                    return await self._try_commit(key, name, ranges)
                except ExactAppendError:
                    raise
                except RocketMQError as error:
                    if not (away := await self._away(ranges)) and not _is_silence(error):
                        raise
                    if not is_logged:
                        is_logged = True
                        log.warning("commit_waits", key=name, brokers=away, reason=str(error))
                await asyncio.sleep(PAUSE)

    async def _try_commit(self, key: str, name: str, ranges: Sequence[QueueRange]) -> StagedCommit:
        records = await self._decisions()
        decision = await records.look_up(name)
        if decision is not None:
            is_given_up = records.found(name + GIVEN_UP) is not None
            if is_given_up or records.found(name + COPIED) is not None:
                parts = decode_record(decision.record)
                return _result(key, parts, 0, is_first=False, is_given_up=is_given_up)
        async with AsyncExitStack() as opened:
            if decision is not None:
                parts, _ = await self._keep(name, decision.record, is_first=False)
                lanes = await self._take_up(opened, name, parts, {})
                is_first = False
            else:
                parts, lanes, is_first = await self._decide(opened, records, name, ranges)
            await run_all(*(lane.copy() for lane in lanes))
            await self._await_readable({lane.target: lane.end for lane in lanes})
        await records.decide(name + COPIED, _DONE)
        await self._store_place(records, name)
        copied = sum(lane.copied for lane in lanes)
        log.info("staged_commit", key=name, copied=copied, is_first=is_first)
        return _result(key, parts, copied, is_first=is_first)

    async def _away(self, ranges: Sequence[QueueRange]) -> list[str]:
        """Return the brokers of a commit that the name servers do not list: they are down."""
        names = {each.queue.broker_name for each in ranges} | {queue.broker_name for queue in self._records}
        try:
            return sorted(names - (await Masters(self._client).addrs()).keys())
        except RemotingError:
            return []

    async def give_up(self, key: str) -> None:
        """End a commit that cannot be finished: later calls of :meth:`commit` with this key copy nothing.

        Rows that are copied already stay. First end the processes that commit with this writer's name.

        Raises:
            ConfigError: nothing is decided for this key.
        """
        name = self._name(key)
        records = await self._decisions()
        if await records.look_up(name) is None:
            raise ConfigError(f"nothing is decided for {name!r}: there is no commit to give up")
        await records.decide(name + GIVEN_UP, _DONE)
        log.warning("staged_commit_given_up", key=name)

    async def status(self) -> StagedStatus:
        """Return the progress of the last commit of this writer."""
        found = {each.key: each for each in await (await self._decisions()).refresh()}
        staged = 0
        for queue in (await self._client.routes.publish_info(self._topics.staging)).queues:
            staged += await self._queues.max_offset(queue) - await self._queues.min_offset(queue)
        begin = f"{self._writer}/"
        names = [key for key in found if key.startswith(begin) and not key.endswith((COPIED, GIVEN_UP))]
        if not names:
            return StagedStatus(key=None, staged=staged, decided=0, copied=0, is_finished=True)
        name = names[-1]
        parts = decode_record(found[name].record)
        is_copied = name + COPIED in found
        return StagedStatus(
            key=name.removeprefix(begin),
            staged=staged,
            decided=sum(part.rows for part in parts),
            copied=sum([part.rows if is_copied else await self._copied(part) for part in parts]),
            is_finished=is_copied or name + GIVEN_UP in found,
        )

    @blocking("base", note=CLOSE_NOTE)
    async def close(self) -> None:
        """Drop the records from memory. The producer stays open."""
        self._records.clear()

    async def _decide(
        self, opened: AsyncExitStack, records: FirstRecords, name: str, ranges: Sequence[QueueRange]
    ) -> tuple[list[StagedQueue], list[StagedLane], bool]:
        """Decide with all locks; return the rows that count, and whether they are those of this call."""
        own = by_queue(ranges, self._topics.target)
        check_targets(own, await self._topics.target_queues(), self._topics.target)
        await self._await_staged(name, own.values())
        appenders = {queue: self._appender(opened, queue) for queue in own}
        ends = await asyncio.gather(*(appender._reserve() for appender in appenders.values()))
        parts = [
            StagedQueue(ranges=own[queue], target=queue, since=end)
            for queue, end in zip(own, ends, strict=True)
        ]
        record = encode_record(parts, self._producer.config.max_message_bytes)
        decision = await records.decide(name, record)
        parts, is_untouched = await self._keep(name, decision.record, is_first=decision.is_ours)
        if not is_untouched:
            return parts, await self._take_up(opened, name, parts, appenders), decision.is_ours
        lanes = [self._lane(part, appenders[part.target]) for part in parts]
        for lane in lanes:
            lane.begin()
        return parts, lanes, True

    async def _take_up(
        self,
        opened: AsyncExitStack,
        name: str,
        parts: Sequence[StagedQueue],
        appenders: Mapping[MessageQueue, ExactAppender],
    ) -> list[StagedLane]:
        """Find out what is copied of rows that were decided before."""
        await self._await_staged(name, [part.ranges for part in parts])
        lanes = []
        for part in parts:
            appender = appenders.get(part.target) or self._appender(opened, part.target)
            lanes.append(self._lane(part, appender))
        await run_all(*(lane.take_up() for lane in lanes))
        return lanes

    async def _keep(self, name: str, record: bytes, *, is_first: bool) -> tuple[list[StagedQueue], bool]:
        """Store a copy of the decision on each target broker; return what counts, and whether it is new.

        A copy that says something else counts: the topic of decisions has lost the first one.
        """
        await self._client.routes.refresh(self._topics.decided)
        for _ in range(2):
            parts = decode_record(record)
            for broker_name in sorted({part.target.broker_name for part in parts}):
                copies = await self._records_of(self._topics.copies(broker_name))
                copy = await copies.decide(name, record)
                is_first = is_first and copy.is_ours
                if copy.record != record:
                    log.warning("decision_restored", key=name, broker=broker_name)
                    record = copy.record
                    break
                await self._store_place(copies, name)
            else:
                return parts, is_first
        raise ExactAppendError(
            f"brokers have different decisions for {name!r}: a topic of decisions was made anew while it was "
            "copied; compare the rows by hand, and end the commit with give_up"
        )

    async def _await_staged(self, name: str, ranges: Iterable[Sequence[QueueRange]]) -> None:
        """Wait until rows can be read; refuse to copy some of them if others are gone."""
        key = name.removeprefix(f"{self._writer}/")
        for parts in ranges:
            queue, begin, end = parts[0].queue, parts[0].begin, parts[-1].end
            lowest = await self._queues.min_offset(queue)
            if lowest > begin:
                raise DataLossError(
                    f"{queue} begins at offset {lowest}: staged rows from {begin} on have expired, so the "
                    f"commit of key {key!r} cannot be finished; give_up ends it without its missing rows"
                )
            try:
                await self._queues.await_readable({queue: end}, timeout=READABLE_TIMEOUT)
            except RemotingTimeoutError as error:
                raise DataLossError(
                    f"staged rows of key {key!r} up to offset {end} cannot be read ({error}): their broker "
                    "has lost them or does not answer; call commit again when it does, or give_up to go on "
                    "without them"
                ) from error

    async def _await_readable(self, ends: Mapping[MessageQueue, int]) -> None:
        try:
            await self._queues.await_readable(ends, timeout=READABLE_TIMEOUT)
        except RocketMQError as error:  # the rows are stored
            log.warning("rows_not_yet_readable", reason=str(error))

    async def _copied(self, part: StagedQueue) -> int:
        """Return how many rows are in the target."""
        queue, first = part.target, part.ranges[0].begin
        begin = max(part.since, await self._queues.min_offset(queue))
        end = await self._queues.max_offset(queue)
        found = await find_last(self._client, queue, self._writer, begin, end, lowest=first)
        return 0 if found is None else rows_up_to(part, found[1].position)

    def _appender(self, opened: AsyncExitStack, queue: MessageQueue) -> ExactAppender:
        """Return an appender of a target queue, which is closed with ``opened``."""
        appender = ExactAppender(
            self._producer,
            queue,
            writer=self._writer,
            origin=f"{self._topics.staging}/{queue.broker_name}/{queue.queue_id}",
            settle_seconds=self._settle_seconds,
        )
        opened.push_async_callback(appender.close)
        return appender

    def _lane(self, part: StagedQueue, appender: ExactAppender) -> StagedLane:
        return StagedLane(self._client, part, appender, request_bytes=self._producer.config.max_batch_bytes)

    async def _decisions(self) -> FirstRecords:
        """Return the records of the queue of decisions; errors as of ``decisions_queue``."""
        return await self._records_of(await self._topics.decisions_queue())

    async def _records_of(self, queue: MessageQueue) -> FirstRecords:
        """Return the records of a queue, from the place of this writer's last decision on."""
        if queue not in self._records:
            begin = await self._queues.min_offset(queue)
            if self._is_recurring:
                group, topic = (
                    self._client.wire_topic(name) for name in (EXACT_GROUP_PREFIX + self._writer, queue.topic)
                )
                place = await fetch_consumer_offset(Masters(self._client), group, topic, queue)
                begin = max(begin, place or 0)
            self._records[queue] = FirstRecords(self._producer, queue, begin)
        return self._records[queue]

    async def _store_place(self, records: FirstRecords, name: str) -> None:
        """Store where a decision is: decisions of later keys come behind it."""
        if not self._is_recurring or (found := records.found(name)) is None:
            return
        group = EXACT_GROUP_PREFIX + self._writer
        try:
            await GroupOffsetAdmin(self._client).update_consumer_offset(
                group, records.queue, found.queue_offset
            )
        except RocketMQError as error:
            log.warning("place_not_stored", queue=str(records.queue), reason=str(error))

    def _name(self, key: str) -> str:
        if not key or not key.isprintable() or " " in key:
            raise MessageRejectedError(f"key {key!r}: want a word without spaces")
        return f"{self._writer}/{key}"


def _is_silence(error: RocketMQError) -> bool:
    """Return whether a request got no answer, or no connection: no broker refused it."""
    if isinstance(error, SendError) and error.attempts:
        return all(attempt.outcome is not Outcome.REFUSED for attempt in error.attempts)
    return isinstance(error, RemotingError)


def _result(
    key: str, parts: Sequence[StagedQueue], copied: int, *, is_first: bool, is_given_up: bool = False
) -> StagedCommit:
    rows = sum(part.rows for part in parts)
    return StagedCommit(key=key, rows=rows, copied=copied, is_first=is_first, is_given_up=is_given_up)
