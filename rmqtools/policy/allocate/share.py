"""Ask a strategy: the checks and the order that all of them rely on, in one place."""

from collections.abc import Collection, Sequence

from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue, java_order
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy


def share(
    strategy: AllocateMessageQueueStrategy,
    group: str,
    client_id: str,
    queues: Collection[MessageQueue],
    client_ids: Collection[str],
) -> list[MessageQueue]:
    """The queues that one member of a group owns.

    Args:
        strategy: the same, with equal settings, at every member.
        group: consumer group; strategies may use it, ours do not.
        client_id: who asks. Not listed in ``client_ids`` (the broker has not seen it yet): owns nothing.
        queues: all queues of one topic, in any order.
        client_ids: all members, in any order; a member listed twice counts twice, as in Java.

    Returns:
        Its share in the strategy's order; what is not among ``queues`` is left out (CONFIG lists the
        queues of all topics).

    Raises:
        ConfigError: no client id, no queues or no members; or the strategy cannot work with them.

    Source of the rule: RebalanceImpl.rebalanceByTopic sorts, AbstractAllocateMessageQueueStrategy.check
    checks, in this order (Java client). Java checks nothing for CONFIG; here all strategies are alike.
    """
    given = sorted(queues or (), key=lambda queue: queue.sort_key)
    mine = share_ordered(strategy, group, client_id, given, sorted(client_ids or (), key=java_order))
    known = frozenset(given)
    return [queue for queue in mine if queue in known]


def share_ordered(
    strategy: AllocateMessageQueueStrategy,
    group: str,
    client_id: str,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
) -> list[MessageQueue]:
    """:func:`share` of lists that are in order already; the answer as the strategy gave it."""
    for what, given in (("client id", client_id), ("queue", queues), ("member", client_ids)):
        if not given:
            raise ConfigError(f"{strategy.name} for group {group!r}: no {what}: want at least one")
    return strategy.allocate(group, client_id, queues, client_ids) if client_id in client_ids else []
