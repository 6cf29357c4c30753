"""The decisions of one writer in the topic of decisions: read in their order, appended, and found again.

Reading begins at the last decision that is known to count: brokers keep its place as a group's offset. They
also keep its number plus one, as the offset of the same group in the staging topic's first queue, on each
broker that gets rows. Where rows are, their decision cannot have been lost unseen.
"""

import asyncio
import uuid
from collections.abc import Iterable

from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin
from rmqtools.engine.exact.decision_log import Records
from rmqtools.engine.exact.staged_topics import StagedTopics
from rmqtools.engine.exact.tail import fetch_number, read_range
from rmqtools.engine.producer.producer import Producer
from rmqtools.errors import ExactAppendError
from rmqtools.model.append_mark import EXACT_GROUP_PREFIX
from rmqtools.model.decision import DECISION_TOKEN
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.staged import COPIED, DECIDED, BatchDecision, Decisions, encode_decision, lost_decision


class WriterDecisions:
    """The decisions of one writer.

    Args:
        producer: a started one; it stays open.
        topics: those of the writes.
        name: what records, marks and groups call the writer: a name for one target.
        names: the writer's own name and the target's, for errors and the log.
        is_recurring: whether brokers keep place and number of the last one.

    Attributes:
        queue: the queue of decisions; None: not read yet.
    """

    def __init__(
        self,
        producer: Producer,
        topics: StagedTopics,
        name: str,
        *,
        names: dict[str, str],
        is_recurring: bool,
    ) -> None:
        self._producer = producer
        self._client = producer._client
        self._topics = topics
        self._admin = GroupOffsetAdmin(self._client)
        self._name = name
        self._names = names
        self._is_recurring = is_recurring
        self._group = EXACT_GROUP_PREFIX + name
        self._known = Decisions(name)
        self._records: Records | None = None

    @property
    def queue(self) -> MessageQueue | None:
        """The queue of decisions; None: it is not known yet."""
        return None if self._records is None else self._records.queue

    @property
    def last(self) -> BatchDecision | None:
        """The last decision that was read; None: there was none."""
        return self._known.last

    async def read(self) -> int | None:
        """Read what was decided until now; errors as of ``decisions_queue``.

        The last decision is read again, too: its record may have been lost, its number decided anew.

        Returns:
            The number of the last decision, even of one that expired or was lost; None: there was none.
        """
        await self._open(await self._topics.decisions_queue())
        noted = [] if self.last is None else [self.last.batch]
        if self._is_recurring:
            noted += await self._noted(await self._topics.one_queue_each())
        return max(noted, default=None)

    async def _noted(self, queues: Iterable[MessageQueue]) -> list[int]:
        """Return the numbers of decisions that the brokers of these queues keep."""
        found = await asyncio.gather(*map(self._number, queues), return_exceptions=True)
        return [number - 1 for number in found if isinstance(number, int) and number > 0]

    async def _open(self, queue: MessageQueue) -> None:
        """Read from the place of the last decision on; from the begin, if another topic has that place."""
        begin, end = await self._admin.min_offset(queue), await self._admin.max_offset(queue)
        place = None
        if self.last is not None and self.queue == queue:
            place = self.last.queue_offset
        elif self._is_recurring:
            place = await self._number(queue)
        for start in dict.fromkeys((begin if place is None or place >= end else max(begin, place), begin)):
            self._known = Decisions(self._name)
            self._records = Records(self._producer, queue, start, self._known.note)
            await self._records.refresh()
            if self.last is not None:
                return

    async def decide(self, wanted: BatchDecision) -> BatchDecision:
        """Append a decision, and return the one that counts."""
        body = encode_decision(wanted, self._producer.config.max_message_bytes)
        await self._opened.append(self._record(DECIDED, wanted.batch, body, wanted.token))
        last = self.last
        if last is None or last.batch < wanted.batch:
            raise ExactAppendError(
                f"commit {wanted.batch} of writer {self._names['writer']!r} does not count: another process "
                f"has decided commit {None if last is None else last.batch} meanwhile; end one of the two"
            )
        return await self.find(wanted.batch, last.batch)

    async def end(self, batch: int, kind: str) -> None:
        """Append that a commit has ended."""
        await self._opened.append(self._record(kind, batch, b"1", uuid.uuid4().hex))

    @property
    def _opened(self) -> Records:
        assert self._records is not None  # read() comes first
        return self._records

    async def find(self, batch: int, last: int) -> BatchDecision:
        """Return the decision of a number; ``last``: of the last one, after which all before have ended.

        Raises:
            ExactAppendError: it has expired, or was lost.
        """
        found = self.last
        if found is None or found.batch != batch:
            queue = self._opened.queue
            earlier = Decisions(self._name)
            found = None
            begin, end = await self._admin.min_offset(queue), await self._admin.max_offset(queue)
            async for message in read_range(self._client, queue, begin, end):
                earlier.note(message)
                if earlier.last is not None and earlier.last.batch == batch:
                    found = earlier.last
        if found is None:
            raise lost_decision(batch, last, **self._names)
        if batch < last:
            found.end = found.end or COPIED
        return found

    async def store_place(self, decided: BatchDecision) -> None:
        """Store where the last decision is, and its number plus one on each broker that gets rows of it.

        Before the first row is copied: where rows are, their decision cannot be lost unseen. Only with the
        locks of a commit that has not ended: so no later number can be there. A commit without rows has no
        locks: its number is stored on all brokers, unless a later one is there.
        """
        if not self._is_recurring:
            return
        own, brokers = self._opened.queue, {part.target.broker_name for part in decided.parts}
        if not brokers:
            queues = await self._topics.one_queue_each()
            if max(await self._noted(queues), default=-1) >= decided.batch:
                return
            brokers = {queue.broker_name for queue in queues}
        brokers.add(own.broker_name)
        numbers = {MessageQueue(self._topics.staging, name, 0): decided.batch + 1 for name in brokers}
        numbers[own] = decided.queue_offset
        update = self._admin.update_consumer_offset
        await asyncio.gather(*(update(self._group, queue, number) for queue, number in numbers.items()))

    def _record(self, kind: str, batch: int, body: bytes, token: str) -> Message:
        """Return a record of this writer; the layout is in ``policy.staged``."""
        return Message(
            self._topics.decisions,
            body,
            tags=kind,
            keys=[f"{self._name}/{batch}"],
            properties={DECISION_TOKEN: token},
        )

    async def _number(self, queue: MessageQueue) -> int | None:
        """Return a number that was stored as the offset of this writer's group."""
        return await fetch_number(self._client, self._group, queue)
