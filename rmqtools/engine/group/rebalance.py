"""Rebalancing: compares the queues a member should hold with those it holds, and takes or gives up the rest.

Every member computes its own share; with the same queues, members and strategy all get the same result.
Source of the rules: RebalanceImpl.doRebalance, rebalanceByTopic, updateProcessQueueTableInRebalance (Java
client 5.5.0). Ours: a round requests the locks of a broker's queues together, those of all topics, and looks
up start offsets together; the lock of a queue whose start is unknown is released. Every round tries again to
release a queue, even if the queue is assigned to this member again (Java leaves it dropped until its pulls
have expired, and no member consumes it).
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

from rmqtools.engine.group.member import Member
from rmqtools.engine.group.membership import ListsByBroker
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.group import ConsumeType
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.member_list import MemberList
from rmqtools.policy.allocate.share import share
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy

log = get_logger(__name__)


class _Share(NamedTuple):
    """The queues of a topic that this member should hold, and whether it has given others up for that."""

    topic: str
    queues: Collection[MessageQueue]
    mine: Collection[MessageQueue]
    is_changed: bool


class Rebalance:
    """The rebalancing of one member."""

    def __init__(
        self,
        member: Member,
        *,
        start_offset: Callable[[MessageQueue], Awaitable[int]],
        queues_changed: Callable[[str, Collection[MessageQueue], Collection[MessageQueue]], None],
    ) -> None:
        """Create it; nothing is sent before :meth:`run`.

        Args:
            member: the member to rebalance.
            start_offset: returns a queue's start offset; negative, or an error of ours: currently unknown.
            queues_changed: called as ``(topic, all_queues, mine)`` when the queues held of a topic have
                changed, or the topic is gone (both empty).
        """
        self._member = member
        self._held = member.held
        self._group = member.group
        self._start_offset = start_offset
        self._queues_changed = queues_changed
        self._to_lock: list[_Share] = []  # of this round
        self._told: ListsByBroker = {}  # in this round: a broker's list is the same for all topics
        self._refused = 0  # queues without a lock, as of the last round
        self._unknown: set[MessageQueue] = set()  # queues whose start the log has called unknown

    @property
    def must_try_again(self) -> bool:
        """True if the last round was refused locks, or left queues to listeners that still run."""
        return self._refused > 0 or self._held.has_kept

    async def run(self, strategy: AllocateMessageQueueStrategy) -> bool:
        """Make one round over all topics; return whether this member now holds exactly its share."""
        balanced = True
        self._to_lock.clear()
        self._told.clear()
        for topic in self._member.subscriptions.topics():
            try:
                balanced &= await self._rebalance_topic(topic, strategy)
            except RocketMQError as error:
                if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                    log.warning("rebalance_failed", group=self._group, topic=topic, reason=str(error))
                    balanced = False
        if self._member.is_orderly:
            balanced &= await self._add_shares(self._to_lock)
        return await self._drop_other_topics() and balanced

    async def _rebalance_topic(self, topic: str, strategy: AllocateMessageQueueStrategy) -> bool:
        queues = await self._member.subscriptions.find_queues(topic)
        if queues is not None and self._takes_all:
            return await self._take(topic, queues, queues)
        if not queues:  # none, or unknown: held queues stay
            if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                self._queues_changed(topic, (), ())
            return True
        members = await self._member.membership.find_members(topic, self._told)
        if members is None or not members.client_ids:
            log.info("members_unknown", group=self._group, topic=topic)
            return True
        if not members.is_settled:
            log.info("members_differ", group=self._group, topic=topic)
            return False
        mine = self._ask(strategy, topic, queues, members)
        return mine is not None and await self._take(topic, queues, mine)

    @property
    def _takes_all(self) -> bool:
        """True if nothing is shared: every member reads all queues, or they are assigned to this one."""
        return self._member.is_broadcasting or self._member.subscriptions.assigned is not None

    def _ask(
        self,
        strategy: AllocateMessageQueueStrategy,
        topic: str,
        queues: Collection[MessageQueue],
        members: MemberList,
    ) -> Collection[MessageQueue] | None:
        """Return this member's share; None: the strategy failed, and all queues stay as they are."""
        try:
            return share(
                strategy, self._group, self._member.client_id, queues, members.client_ids, members.entries
            )
        except Exception as error:  # a user's strategy may raise anything; the consumer continues
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
        """Hold exactly ``mine`` of a topic; those that need a lock, at the end of the round."""
        found = _Share(topic, queues, mine, await self._drop_others(topic, mine))
        if self._member.is_orderly:
            self._to_lock.append(found)
            return True
        return await self._add_shares([found])

    async def _add_shares(self, shares: Sequence[_Share]) -> bool:
        """Take what is missing of these shares; return whether all of them are held."""
        added = await self._add([queue for each in shares for queue in each.mine])
        for each in shares:
            if each.is_changed or not added.isdisjoint(each.mine):
                self._queues_changed(each.topic, each.queues, each.mine)
        return all(self._held.works(queue) for each in shares for queue in each.mine)

    async def _drop_others(self, topic: str, mine: Collection[MessageQueue]) -> bool:
        """Give up held queues of a topic that are not in ``mine``; return whether any was given up."""
        wanted, passive = set(mine), self._member.consume_type is ConsumeType.CONSUME_PASSIVELY
        doomed = [
            held
            for held in self._held.pulled.of_topic(topic)
            if held.queue not in wanted or self._held.is_leaving(held) or (passive and held.is_pull_expired)
        ]
        if doomed:
            await self._held.give_up(doomed)
        return not all(map(self._held.holds, doomed))

    async def _add(self, mine: Collection[MessageQueue]) -> set[MessageQueue]:
        """Lock and hold the queues that are not held yet; return those held now."""
        fresh = [queue for queue in mine if queue not in self._held.pulled]
        granted = await self._held.lock(fresh) if fresh else ()
        self._note_refused(len(fresh) - len(granted))
        for queue in granted:
            self._held.forget(queue)
        await asyncio.gather(*map(self._add_one, granted))
        held = {queue for queue in granted if queue in self._held.pulled}
        await self._held.unlock([queue for queue in granted if queue not in held])
        return held

    def _note_refused(self, count: int) -> None:
        """Note how many locks this member lacks; log when it begins to lack some, and when it has all."""
        if bool(count) is not bool(self._refused):
            event = "locks_refused" if count else "locks_granted"
            log.info(event, group=self._group, queues=count or self._refused)
        self._refused = count

    async def _add_one(self, queue: MessageQueue) -> None:
        """Hold a queue once its start is known: none waits for the broker of another one."""
        offset = await self._find_start(queue)
        if offset >= 0 and self._may_hold(queue):
            self._held.hold(queue, offset)

    def _may_hold(self, queue: MessageQueue) -> bool:
        """Return whether a queue is still wanted. One just locked is held; the next round releases it."""
        return self._member.is_orderly or self._member.subscriptions.wants(queue)

    async def _find_start(self, queue: MessageQueue) -> int:
        """Return a queue's start; negative: unknown, which the log says once until it is known."""
        try:
            offset = await self._start_offset(queue)
            reason = f"the start would be {offset}"
        except RocketMQError as error:
            offset, reason = -1, str(error)
        if offset >= 0:
            self._unknown.discard(queue)
        elif queue not in self._unknown:
            self._unknown.add(queue)
            log.warning("start_offset_unknown", group=self._group, queue=str(queue), reason=reason)
        return offset

    async def _drop_other_topics(self) -> bool:
        """Give up queues of unsubscribed topics; return whether all are given up."""
        others = set(self._held.pulled.topics) - set(self._member.subscriptions.topics())
        for topic in others:
            await self._drop_others(topic, ())
        return others.isdisjoint(self._held.pulled.topics)
