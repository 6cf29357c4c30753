"""Findings that half of a rebalance makes count once they have lasted."""

from rmqtools import MessageQueue
from rmqtools.group import Finding, FindingKind
from rmqtools.policy.group_check import SETTLE_SECONDS, Settling

QUEUES = tuple(MessageQueue("orders", "broker-a", number) for number in range(2))
UNOWNED = Finding(FindingKind.QUEUE_UNOWNED, "nobody owns it", queues=QUEUES[:1])
OTHER = Finding(FindingKind.QUEUE_UNOWNED, "nobody owns it", queues=QUEUES[1:])
FAILS = Finding(FindingKind.MEMBER_FAILS, "it fails", "10.0.0.1@one")


def test_what_is_no_part_of_a_rebalance_counts_at_once():
    assert Settling().lasting("g", [FAILS], now=0.0) == ((FAILS,), 0.0)


def test_a_queue_without_an_owner_counts_once_it_has_lasted():
    settling = Settling()

    assert settling.lasting("g", [UNOWNED, FAILS], now=0.0) == ((FAILS,), SETTLE_SECONDS)
    assert settling.lasting("g", [UNOWNED], now=1.0) == ((), SETTLE_SECONDS - 1.0)
    assert settling.lasting("g", [UNOWNED], now=SETTLE_SECONDS) == ((UNOWNED,), 0.0)


def test_other_queues_other_groups_and_a_gap_begin_anew():
    settling = Settling()
    settling.lasting("g", [UNOWNED], now=0.0)

    assert settling.lasting("other", [UNOWNED], now=9.0) == ((), SETTLE_SECONDS)
    assert settling.lasting("g", [OTHER], now=9.0) == ((), SETTLE_SECONDS)
    assert settling.lasting("g", [UNOWNED], now=99.0) == ((), SETTLE_SECONDS)
