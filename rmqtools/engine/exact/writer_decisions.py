"""The decisions of one writer in the topic of decisions: read in their order, appended, and found again.

Reading begins at the last decision that is known to count: brokers keep its place as a group's offset. They
also keep its number plus one, as the offset of the same group in the staging topic's first queue, on each
broker that gets rows. Where rows are, their decision cannot have been lost unseen.
"""

import asyncio
import uuid

from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin, fetch_consumer_offset
from rmqtools.engine.admin.masters import Masters
from rmqtools.engine.exact.decision_log import Records
from rmqtools.engine.exact.staged_topics import StagedTopics
from rmqtools.engine.exact.tail import read_range
from rmqtools.engine.producer.producer import Producer
from rmqtools.errors import ExactAppendError, RemotingError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.append_mark import EXACT_GROUP_PREFIX
from rmqtools.model.decision import DECISION_TOKEN
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.staged import COPIED, DECIDED, BatchDecision, Decisions, encode_decision, lost_decision

log = get_logger(__name__)


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
        self._producer, self._client, self._topics = producer, producer._client, topics
        self._admin = GroupOffsetAdmin(self._client)
        self._name, self._names, self._is_recurring = name, names, is_recurring
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

    def forget(self) -> None:
        """Read all anew the next time."""
        self._records = None

    async def read(self) -> int | None:
        """Read what was decided until now; errors as of ``decisions_queue``.

        Returns:
            The number of the last decision, even of one that expired or was lost; None: there was none.
        """
        queue = await self._topics.decisions_queue()
        if self._records is None or self._records.queue != queue:
            begin, end = await self._admin.min_offset(queue), await self._admin.max_offset(queue)
            place = await self._offset(queue) if self._is_recurring else None
            await self._read_from(queue, begin if place is None or place >= end else max(begin, place))
            if self._known.last is None and place is not None:  # another topic than that of the place
                await self._read_from(queue, begin)
        assert self._records is not None
        await self._records.refresh()
        return await self._last()

    async def decide(self, wanted: BatchDecision) -> BatchDecision:
        """Append a decision, and return the one that counts."""
        body = encode_decision(wanted, self._producer.config.max_message_bytes)
        await self._started().append(self._record(DECIDED, wanted.batch, body, wanted.token))
        last = self._known.last
        if last is None or last.batch < wanted.batch:
            raise ExactAppendError(
                f"commit {wanted.batch} of writer {self._names['writer']!r} does not count: another process "
                f"has decided commit {None if last is None else last.batch} meanwhile; end one of the two"
            )
        return await self.find(wanted.batch, last.batch)

    async def end(self, batch: int, kind: str, *, is_read: bool) -> None:
        """Append that a commit has ended. ``is_read``: wait until this can be read."""
        record = self._record(kind, batch, b"1", uuid.uuid4().hex)
        if is_read:
            await self._started().append(record)
        else:
            await self._started().write(record)

    def _started(self) -> Records:
        assert self._records is not None  # read() comes first
        return self._records

    async def find(self, batch: int, last: int) -> BatchDecision:
        """Return the decision of a number; one before the last is read again.

        Raises:
            ExactAppendError: it has expired, or was lost.
        """
        known, records = self._known.last, self._records
        if known is not None and known.batch == batch:
            return known
        assert records is not None
        earlier, begin = Decisions(self._name), await self._admin.min_offset(records.queue)
        end = await self._admin.max_offset(records.queue)
        found: BatchDecision | None = None
        async for message in read_range(self._client, records.queue, begin, end):
            earlier.note(message)
            if earlier.last is not None and earlier.last.batch == batch:
                found = earlier.last
        if found is None:
            raise lost_decision(batch, last, **self._names)
        found.end = found.end or COPIED  # a later one was decided after it
        return found

    async def store_place(self, decided: BatchDecision) -> None:
        """Store where the last decision is, and its number plus one on each broker that gets rows of it.

        Before the first row is copied: where rows are, their decision cannot be lost unseen.
        """
        records = self._records
        if records is None or not self._is_recurring:
            return
        brokers = {records.queue.broker_name, *(part.target.broker_name for part in decided.parts)}
        numbers = {MessageQueue(self._topics.staging, name, 0): decided.batch + 1 for name in brokers}
        numbers[records.queue] = decided.queue_offset
        update = self._admin.update_consumer_offset
        try:
            await asyncio.gather(*(update(self._group, queue, number) for queue, number in numbers.items()))
        except RemotingError:  # tried again
            raise
        except RocketMQError as error:
            log.warning("place_not_stored", **self._names, batch=decided.batch, reason=str(error))

    def _record(self, kind: str, batch: int, body: bytes, token: str) -> Message:
        """Return a record of this writer; the layout is in ``policy.staged``."""
        return Message(
            self._topics.decisions,
            body,
            tags=kind,
            keys=[f"{self._name}/{batch}"],
            properties={DECISION_TOKEN: token},
        )

    async def _read_from(self, queue: MessageQueue, begin: int) -> None:
        self._known = Decisions(self._name)
        self._records = Records(self._producer, queue, begin, self._known.note)
        await self._records.refresh()

    async def _last(self) -> int | None:
        known = self._known.last
        noted = [] if known is None else [known.batch]
        if self._is_recurring:
            queues = await self._topics.one_queue_each()
            found = await asyncio.gather(*map(self._offset, queues), return_exceptions=True)
            noted += [one - 1 for one in found if isinstance(one, int) and one > 0]
        return max(noted, default=None)

    async def _offset(self, queue: MessageQueue) -> int | None:
        """Return a number that was stored as the offset of this writer's group."""
        group, topic = (self._client.wire_topic(name) for name in (self._group, queue.topic))
        return await fetch_consumer_offset(Masters(self._client), group, topic, queue)
