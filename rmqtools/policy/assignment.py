"""A broker's assignment of queues to a member (5.x): which it pulls, which it pops, which it releases.

Source of the rules: RebalanceImpl.getRebalanceResultFromBroker and updateMessageQueueAssignment,
RebalancePushImpl.clientRebalance and getConsumeInitMode (Java client).
"""

from collections.abc import Collection, Iterable

from rmqtools.model.group import ConsumeFromWhere, MessageQueueAssignment, MessageRequestMode
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX, pop_retry_topic
from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record

POP_FROM_MIN, POP_FROM_MAX = 0, 1  # initMode of a pop request; upstream ConsumeInitMode


@record
class AssignmentPlan:
    """The changes that an assignment asks for, for the queues of one topic; sorted.

    Pulled queues are compared with those held, as in any round, and start at the group's offset. Popped
    queues have no start offset: the broker keeps it.

    Attributes:
        pull, pop: the assigned queues. The member is balanced when it holds exactly these.
        drop_pop: held popped queues to give up first.
        add_pop: popped queues to take then. An expired queue is in both.
        subscribe: the retry topic of popped queues, to subscribe to because all queues are pulled now.
        unsubscribe: the same topic, to unsubscribe from because all queues are popped now.
    """

    pull: tuple[MessageQueue, ...]
    pop: tuple[MessageQueue, ...]
    drop_pop: tuple[MessageQueue, ...]
    add_pop: tuple[MessageQueue, ...]
    subscribe: str | None = None
    unsubscribe: str | None = None

    @property
    def assigned(self) -> frozenset[MessageQueue]:
        """All queues of the member's share."""
        return frozenset((*self.pull, *self.pop))


def plan_assignment(
    topic: str,
    group: str,
    *,
    assignments: Iterable[MessageQueueAssignment],
    popped: Collection[MessageQueue] = (),
    expired: Collection[MessageQueue] = (),
) -> AssignmentPlan:
    """Compare a broker's answer with the queues that the member pops.

    If the broker failed or answered no assignments at all (None: it does not know the member), keep all
    queues: do not call this, the member is not balanced. Assignments without a queue are ignored.

    Args:
        topic: topic of the assignments.
        group: the consumer group.
        assignments: the broker's answer.
        popped: the queues that the member pops, of all topics.
        expired: those of ``popped`` without a request for too long (120 s).
    """
    pull, pop = _split(assignments)
    drop = {q for q in popped if q.topic == topic and (q not in pop or q in expired)}
    switched = None if topic.startswith(RETRY_GROUP_TOPIC_PREFIX) else pop_retry_topic(topic, group)
    return AssignmentPlan(
        pull=_ordered(pull),
        pop=_ordered(pop),
        drop_pop=_ordered(drop),
        add_pop=_ordered(pop - (set(popped) - drop)),
        subscribe=switched if pull and not pop else None,
        unsubscribe=switched if pop and not pull else None,
    )


def is_client_rebalance(*, configured: bool, orderly: bool, broadcasting: bool) -> bool:
    """Return whether a member computes its share itself; otherwise it asks a broker of the topic."""
    return configured or orderly or broadcasting


def pop_init_mode(consume_from: ConsumeFromWhere | str) -> int:
    """Return where a broker starts a group without offset: at the first message, or at new ones only."""
    first = consume_from == ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    return POP_FROM_MIN if first else POP_FROM_MAX


def _split(assignments: Iterable[MessageQueueAssignment]) -> tuple[set[MessageQueue], set[MessageQueue]]:
    """Return the queues to pull and the queues to pop; every mode but POP means pull."""
    pull: set[MessageQueue] = set()
    pop: set[MessageQueue] = set()
    for each in assignments:
        if each.message_queue is not None:
            (pop if each.mode == MessageRequestMode.POP else pull).add(each.message_queue)
    return pull, pop


def _ordered(queues: Iterable[MessageQueue]) -> tuple[MessageQueue, ...]:
    return tuple(sorted(queues, key=lambda queue: queue.sort_key))
