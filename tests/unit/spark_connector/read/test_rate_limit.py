"""Shares of a micro-batch: in proportion, never too much, never nothing for a small queue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools import MessageQueue
from spark_connector.options.batch_limits import Limits
from spark_connector.read.rate_limit import admit, is_due, share_limit

QUEUES = [MessageQueue("T", broker, queue_id) for broker in ("a", "b") for queue_id in range(4)]
A, B, C = QUEUES[:3]

backlogs = st.dictionaries(st.sampled_from(QUEUES), st.integers(0, 10**12))
limits = st.integers(1, 10**12)


@given(limits, backlogs)
def test_shares_add_up_to_the_limit_or_to_what_is_there(limit, backlog):
    takers = sum(count > 0 for count in backlog.values())

    assert sum(share_limit(limit, backlog).values()) == min(max(limit, takers), sum(backlog.values()))


@given(limits, backlogs)
def test_nobody_gets_more_than_is_there_and_whoever_has_any_gets_some(limit, backlog):
    shares = share_limit(limit, backlog)

    assert shares.keys() == backlog.keys()
    assert all(min(1, backlog[queue]) <= shares[queue] <= backlog[queue] for queue in backlog)


@given(limits, backlogs)
def test_a_longer_queue_never_gets_less(limit, backlog):
    shares = share_limit(limit, backlog)

    ordered = sorted(backlog, key=lambda queue: (backlog[queue], shares[queue]))
    assert [shares[queue] for queue in ordered] == sorted(shares.values())


@given(limits, backlogs)
def test_shares_are_in_proportion_but_for_one_message(limit, backlog):
    total, queues = max(sum(backlog.values()), 1), len(backlog)
    shares = share_limit(limit, backlog)

    for queue, count in backlog.items():
        exact = count * min(limit, total) / total
        assert abs(shares[queue] - exact) <= 1 + queues + exact * 1e-9
    if all(count * limit >= total for count in backlog.values()):
        assert all(abs(shares[q] - n * min(limit, total) / total) < 1 + n * 1e-9 for q, n in backlog.items())


def test_small_queues_are_not_starved_by_a_large_one():
    assert share_limit(10, {A: 1_000_000, B: 1, C: 3}) == {A: 8, B: 1, C: 1}


def test_without_limits_everything_is_taken():
    assert admit({A: 7, B: 0}, Limits(), {}) == {A: 7, B: 0}


@given(limits, limits, backlogs, st.data())
def test_bytes_and_offsets_hold_together(max_offsets, max_bytes, backlog, data):
    sizes = {queue: data.draw(st.integers(1, 10**7)) for queue, count in backlog.items() if count}
    both = Limits(max_offsets=max_offsets, max_bytes=max_bytes)

    taken = admit(backlog, both, sizes)

    assert all(min(1, backlog[queue]) <= taken[queue] <= backlog[queue] for queue in backlog)
    assert sum(taken.values()) <= max(max_offsets, len(sizes))
    beyond_one = sum((taken[queue] - 1) * sizes[queue] for queue in sizes)
    assert beyond_one <= max_bytes


def test_bytes_are_shared_by_size_not_by_count():
    taken = admit({A: 1000, B: 1000}, Limits(max_bytes=110_000), {A: 1000, B: 100})

    assert taken == {A: 100, B: 100}


def test_enough_bytes_take_everything():
    assert admit({A: 3, B: 2}, Limits(max_bytes=10_000), {A: 333, B: 777}) == {A: 3, B: 2}


@pytest.mark.parametrize(
    ("waiting", "waited", "due"),
    [
        pytest.param(9, 59.9, False, id="too-few-too-soon"),
        pytest.param(10, 0.0, True, id="enough"),
        pytest.param(0, 60.0, True, id="long-enough"),
    ],
)
def test_a_batch_waits_for_enough_or_long_enough(waiting, waited, due):
    assert is_due(waiting, waited, Limits(min_offsets=10, max_delay=60)) is due


def test_without_a_minimum_nothing_waits():
    assert is_due(1, 0.0, Limits())
