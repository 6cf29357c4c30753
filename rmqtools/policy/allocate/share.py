"""Calls a strategy, after the checks and the sorting that all strategies rely on.

- Members that are listed twice are not merged before sharing, as in Java. Merging would give other queues
  than Java's members of the same group compute.
- ``share`` treats CONFIG like every strategy, although Java's CONFIG checks nothing, and leaves out queues of
  other topics.
- ``share_ordered`` asks no strategy for a member that brokers do not list yet: it owns nothing.

``strategy_table`` is the one table of the strategies' names, classes and options. Strategies see neither a
clock nor the network: the caller gives them the pins that are valid now (``AllocateByPins.with_pins``).
"""

from collections.abc import Collection, Sequence

from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue, java_order
from rmqtools.policy.allocate.averagely import AllocateAveragely
from rmqtools.policy.allocate.averagely_by_circle import AllocateAveragelyByCircle
from rmqtools.policy.allocate.by_machine_room import AllocateByMachineRoom
from rmqtools.policy.allocate.by_pins import AllocateByPins
from rmqtools.policy.allocate.machine_room_nearby import AllocateMachineRoomNearby
from rmqtools.policy.allocate.member_list import FIRST_ENTRY, with_one_entry
from rmqtools.policy.allocate.pinned_by_ip import AllocatePinnedByIp
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy


def share(
    strategy: AllocateMessageQueueStrategy,
    group: str,
    client_id: str,
    queues: Collection[MessageQueue],
    client_ids: Collection[str],
    entries: Collection[int] = FIRST_ENTRY,
) -> list[MessageQueue]:
    """Return the queues that one member of a group owns.

    Args:
        strategy: must be the same, with equal settings, at every member.
        group: consumer group; our strategies do not use it.
        client_id: the member. It owns nothing if ``client_ids`` lacks it (the broker does not know it yet).
        queues: all queues of one topic, in any order.
        client_ids: all members, in any order; a member listed twice counts twice, as in Java.
        entries: which of the entries with ``client_id`` are this member's, counted from 0. Strategies that
            share by position give it the queues of all of them; in Java only those of the first.

    Returns:
        Its share in the strategy's order, without queues that are not among ``queues`` (CONFIG lists the
        queues of all topics).

    Raises:
        ConfigError: no client id, no queues or no members, or the strategy refuses them.

    Source of the rule: RebalanceImpl.rebalanceByTopic sorts, AbstractAllocateMessageQueueStrategy.check
    checks, in this order (Java client). Java checks nothing for CONFIG; here all strategies are alike.
    """
    given = sorted(queues or (), key=lambda queue: queue.sort_key)
    members = sorted(client_ids or (), key=java_order)
    known = frozenset(given)
    lists = [members]
    if entries != FIRST_ENTRY and client_id in members and _is_positional(strategy):
        lists = [with_one_entry(members, client_id, entry) for entry in entries]
    shares = (share_ordered(strategy, group, client_id, given, one) for one in lists)
    return [queue for mine in shares for queue in mine if queue in known]


def share_ordered(
    strategy: AllocateMessageQueueStrategy,
    group: str,
    client_id: str,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
) -> list[MessageQueue]:
    """:func:`share` for sorted lists; returns the strategy's answer unchanged."""
    for what, given in (("client id", client_id), ("queue", queues), ("member", client_ids)):
        if not given:
            raise ConfigError(f"{strategy.name} for group {group!r}: no {what}: want at least one")
    return strategy.allocate(group, client_id, queues, client_ids) if client_id in client_ids else []


def _is_positional(strategy: AllocateMessageQueueStrategy) -> bool:
    """Return whether a member's share depends on its place in the list, and not on its id."""
    if isinstance(strategy, AllocatePinnedByIp | AllocateByPins | AllocateMachineRoomNearby):
        return _is_positional(strategy.inner)
    return isinstance(strategy, AllocateAveragely | AllocateAveragelyByCircle | AllocateByMachineRoom)
