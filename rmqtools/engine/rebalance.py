"""Rebalancing: which queues a member should hold, compared with those it does.

Every member computes its own share: same queues, same members, same strategy, same answer. Source of the
rules: RebalanceImpl.doRebalance, rebalanceByTopic, updateProcessQueueTableInRebalance (Java client 5.5.0).
Ours: locks are asked for all queues of a broker at once, starts are looked up together, and the release of a
queue is tried again in every round, also where the queue is this member's again (Java then leaves it dropped,
consumed by nobody, until its pulls have expired).
"""

import asyncio
from collections.abc import Collection, Iterable
from typing import Protocol

from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.group import ConsumeType
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.share import share
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy

log = get_logger(__name__)

TRY_AGAIN_DELAY = 0.5  # seconds until refused locks are asked for again, and kept queues released


class QueueHolder(Protocol):
    """The consumer whose queues are rebalanced."""

    @property
    def consume_type(self) -> ConsumeType:
        """Who fetches."""

    @property
    def is_broadcasting(self) -> bool:
        """Whether every member gets all messages."""

    @property
    def is_orderly(self) -> bool:
        """Whether a queue must be locked before it is held."""

    def subscribed_topics(self) -> Iterable[str]:
        """The topics the group reads."""

    async def find_queues(self, topic: str) -> Collection[MessageQueue] | None:
        """All queues of a topic; None: not known."""

    async def find_members(self, topic: str) -> Collection[str] | None:
        """The client ids of the group; None: not known."""

    async def release(self, held: ProcessQueue) -> bool:
        """Give up a dropped queue: its offset is persisted, its lock given back.

        False: not now. The holder asks for another round by itself.
        """

    async def lock(self, queues: Collection[MessageQueue]) -> Collection[MessageQueue]:
        """Lock queues for this member alone; those it got."""

    def forget_offset(self, queue: MessageQueue) -> None:
        """Drop what was noted of a queue when it was held before."""

    async def start_offset(self, queue: MessageQueue) -> int:
        """Where to begin; negative: it cannot be told now.

        Raises:
            RocketMQError: likewise.
        """

    def begin(self, queue: MessageQueue, offset: int) -> ProcessQueue:
        """Make what holds a queue, to be fetched from ``offset`` on."""

    def work_on(self, held: ProcessQueue) -> None:
        """Start to fetch and to consume a queue that is held now."""

    def queues_changed(
        self, topic: str, all_queues: Collection[MessageQueue], mine: Collection[MessageQueue]
    ) -> None:
        """The queues of a topic held by this member have changed, or the topic is gone (both empty)."""

    def rebalance_later(self, delay: float) -> None:
        """Ask for another round in ``delay`` seconds."""


class Rebalance:
    """One member's rounds. ``table`` is what it holds, dropped ones that cannot be released yet included."""

    def __init__(
        self, holder: QueueHolder, *, group: str, client_id: str, table: dict[MessageQueue, ProcessQueue]
    ) -> None:
        self.table = table
        self._unreleased: set[ProcessQueue] = set()  # dropped, and still in the table
        self._holder = holder
        self._group = group
        self._client_id = client_id

    async def run(self, strategy: AllocateMessageQueueStrategy) -> bool:
        """One round over all topics; whether this member now holds just what it should."""
        balanced = True
        for topic in list(self._holder.subscribed_topics()):
            try:
                balanced &= await self._rebalance_topic(topic, strategy)
            except RocketMQError as error:
                if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                    log.warning("rebalance_failed", group=self._group, topic=topic, reason=str(error))
                    balanced = False
        return await self._drop_other_topics() and balanced

    async def _rebalance_topic(self, topic: str, strategy: AllocateMessageQueueStrategy) -> bool:
        queues = await self._holder.find_queues(topic)
        if queues is not None and self._holder.is_broadcasting:
            return await self._take(topic, queues, queues)
        if not queues:  # known not to be any, or not known: what is held stays
            if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                self._holder.queues_changed(topic, (), ())
            return True
        members = await self._holder.find_members(topic)
        if not members:
            log.info("members_unknown", group=self._group, topic=topic)
            return True
        mine = self._ask(strategy, topic, queues, members)
        return mine is not None and await self._take(topic, queues, mine)

    def _ask(
        self,
        strategy: AllocateMessageQueueStrategy,
        topic: str,
        queues: Collection[MessageQueue],
        members: Collection[str],
    ) -> Collection[MessageQueue] | None:
        """This member's share; None: the strategy failed, and everything stays as it is."""
        try:
            return share(strategy, self._group, self._client_id, queues, members)
        except Exception as error:  # a user's strategy: whatever it does, the consumer goes on
            log.error(
                "allocation_failed",
                group=self._group,
                topic=topic,
                strategy=getattr(strategy, "name", type(strategy).__name__),
                reason=repr(error),
                exc_info=error,
            )
            return None

    async def _take(
        self, topic: str, queues: Collection[MessageQueue], mine: Collection[MessageQueue]
    ) -> bool:
        """Hold ``mine`` of a topic and nothing else of it."""
        changed = await self._drop_others(topic, mine)
        changed |= await self._add(mine)
        if changed:
            self._holder.queues_changed(topic, queues, mine)
        working = {
            queue for queue, held in self.table.items() if queue.topic == topic and not held.is_dropped
        }
        return working == set(mine)

    async def _drop_others(self, topic: str, mine: Collection[MessageQueue]) -> bool:
        wanted, passive = set(mine), self._holder.consume_type is ConsumeType.CONSUME_PASSIVELY
        doomed = [
            held
            for queue, held in self.table.items()
            if queue.topic == topic
            and (queue not in wanted or held in self._unreleased or (passive and held.is_pull_expired))
        ]
        for held in doomed:
            held.drop()
        self._unreleased.update(doomed)
        released = await asyncio.gather(*(self._holder.release(held) for held in doomed))
        gone = [held for held, done in zip(doomed, released, strict=True) if done]
        for held in gone:
            if self.table.get(held.queue) is held:  # the consumer may have given it up meanwhile
                del self.table[held.queue]
        self._unreleased.difference_update(gone)
        self._unreleased.intersection_update(self.table.values())
        return bool(gone)

    async def _add(self, mine: Collection[MessageQueue]) -> bool:
        fresh = [queue for queue in mine if queue not in self.table]
        if not fresh:
            return False
        granted = await self._lock(fresh) if self._holder.is_orderly else fresh
        for queue in granted:
            self._holder.forget_offset(queue)
        offsets = await asyncio.gather(*map(self._start_offset, granted))
        added = [
            self._holder.begin(queue, offset)
            for queue, offset in zip(granted, offsets, strict=True)
            if offset >= 0
        ]
        for held in added:
            held.lock(True)
            self.table[held.queue] = held
            self._holder.work_on(held)
        return bool(added)

    async def _lock(self, queues: list[MessageQueue]) -> list[MessageQueue]:
        granted = set(await self._holder.lock(queues))
        if len(granted) < len(queues):
            self._holder.rebalance_later(TRY_AGAIN_DELAY)
        return [queue for queue in queues if queue in granted]

    async def _start_offset(self, queue: MessageQueue) -> int:
        try:
            offset = await self._holder.start_offset(queue)
        except RocketMQError as error:
            log.warning("start_offset_unknown", group=self._group, queue=str(queue), reason=str(error))
            return -1
        if offset < 0:
            log.warning("start_offset_unknown", group=self._group, queue=str(queue), offset=offset)
        return offset

    async def _drop_other_topics(self) -> bool:
        """Give up what is not subscribed any more; whether nothing of it is left."""
        others = {queue.topic for queue in self.table} - set(self._holder.subscribed_topics())
        for topic in others:
            await self._drop_others(topic, ())
        return not others & {queue.topic for queue in self.table}
