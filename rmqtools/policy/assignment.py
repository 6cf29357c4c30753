"""A broker's assignment of queues to a member (5.x): what the member pulls, what it pops, what it gives up.

Source of the rules: RebalanceImpl.getRebalanceResultFromBroker and updateMessageQueueAssignment,
RebalancePushImpl.clientRebalance and getConsumeInitMode (Java client).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rmqtools.model.group import ConsumeFromWhere, MessageQueueAssignment, MessageRequestMode
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX, pop_retry_topic
from rmqtools.model.queue import MessageQueue

POP_FROM_MIN, POP_FROM_MAX = 0, 1  # initMode of a pop request; upstream ConsumeInitMode


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldQueues:
    """What a member holds, of all topics. For the expired of them nobody was asked for too long (120 s)."""

    pull: Collection[MessageQueue] = ()
    pop: Collection[MessageQueue] = ()
    expired_pull: Collection[MessageQueue] = ()
    expired_pop: Collection[MessageQueue] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentPlan:
    """What follows from an assignment, for the queues of one topic; all in the order of queues.

    Drop first, then add; an expired queue is dropped and added. One that cannot be released yet stays in the
    table and must not be added until it is. Pulled queues begin where the group is, popped ones have no
    start: the broker keeps it.

    Attributes:
        pull, pop: the assigned queues. The member is balanced when it works on just these.
        drop_pull, drop_pop: held, to give up.
        add_pull, add_pop: to take.
        subscribe: retry topic of those that pop, to subscribe to as all is pulled now.
        unsubscribe: the same, no longer wanted as all is popped.
    """

    pull: tuple[MessageQueue, ...]
    pop: tuple[MessageQueue, ...]
    drop_pull: tuple[MessageQueue, ...]
    drop_pop: tuple[MessageQueue, ...]
    add_pull: tuple[MessageQueue, ...]
    add_pop: tuple[MessageQueue, ...]
    subscribe: str | None = None
    unsubscribe: str | None = None

    @property
    def assigned(self) -> frozenset[MessageQueue]:
        """All queues of the member's share."""
        return frozenset((*self.pull, *self.pop))


def plan_assignment(
    topic: str, group: str, *, assignments: Iterable[MessageQueueAssignment], held: HeldQueues
) -> AssignmentPlan:
    """Compare a broker's answer with what the member holds.

    Where the broker answered no assignments at all (None: it does not know the member) or failed, nothing may
    be changed: do not call this, the member is not balanced. Assignments without a queue say nothing.
    """
    pull, pop = _split(assignments)
    drop_pull = _to_drop(topic, pull, held.pull, held.expired_pull)
    drop_pop = _to_drop(topic, pop, held.pop, held.expired_pop)
    switched = None if topic.startswith(RETRY_GROUP_TOPIC_PREFIX) else pop_retry_topic(topic, group)
    return AssignmentPlan(
        pull=_ordered(pull),
        pop=_ordered(pop),
        drop_pull=_ordered(drop_pull),
        drop_pop=_ordered(drop_pop),
        add_pull=_ordered(pull - (set(held.pull) - drop_pull)),
        add_pop=_ordered(pop - (set(held.pop) - drop_pop)),
        subscribe=switched if pull and not pop else None,
        unsubscribe=switched if pop and not pull else None,
    )


def is_client_rebalance(*, configured: bool, orderly: bool, broadcasting: bool) -> bool:
    """Whether a member computes its share itself; else a broker of the topic is asked for it."""
    return configured or orderly or broadcasting


def pop_init_mode(consume_from: ConsumeFromWhere) -> int:
    """Where a broker begins to hand out messages to a group that has no offset: the first, else new ones."""
    first = consume_from is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    return POP_FROM_MIN if first else POP_FROM_MAX


def _split(assignments: Iterable[MessageQueueAssignment]) -> tuple[set[MessageQueue], set[MessageQueue]]:
    """The queues to pull and those to pop; what is not POP is pulled."""
    pull: set[MessageQueue] = set()
    pop: set[MessageQueue] = set()
    for each in assignments:
        if each.message_queue is not None:
            (pop if each.mode == MessageRequestMode.POP else pull).add(each.message_queue)
    return pull, pop


def _to_drop(
    topic: str,
    wanted: Collection[MessageQueue],
    held: Collection[MessageQueue],
    expired: Collection[MessageQueue],
) -> set[MessageQueue]:
    mine = (queue for queue in held if queue.topic == topic)
    return {queue for queue in mine if queue not in wanted or queue in expired}


def _ordered(queues: Iterable[MessageQueue]) -> tuple[MessageQueue, ...]:
    return tuple(sorted(queues, key=lambda queue: queue.sort_key))
