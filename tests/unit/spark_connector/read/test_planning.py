"""Ranges: complete, disjoint, of the right number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools import MessageQueue, QueueRange
from spark_connector.read.planning import gather_ranges, plan_ranges

A, B, C = (MessageQueue("T", f"broker-{name}", 0) for name in "abc")

bounds = st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)).map(sorted)
counts = st.none() | st.integers(1, 40)


def test_each_queue_with_messages_is_one_range_by_queue():
    assert plan_ranges({B: 5, A: 0, C: 7}, {B: 9, A: 3, C: 7}) == [QueueRange(A, 0, 3), QueueRange(B, 5, 9)]


def test_max_records_cuts_evenly():
    assert plan_ranges({A: 10}, {A: 20}, max_records=4) == [
        QueueRange(A, 10, 13),
        QueueRange(A, 13, 16),
        QueueRange(A, 16, 20),
    ]


def test_min_partitions_cuts_large_queues_and_leaves_small_ones():
    ranges = plan_ranges({A: 0, B: 0}, {A: 900, B: 10}, min_partitions=4)

    assert ranges == [
        QueueRange(A, 0, 300),
        QueueRange(A, 300, 600),
        QueueRange(A, 600, 900),
        QueueRange(B, 0, 10),
    ]


def test_min_partitions_is_a_hint_where_there_are_fewer_messages():
    assert plan_ranges({A: 0}, {A: 2}, min_partitions=5) == [QueueRange(A, 0, 1), QueueRange(A, 1, 2)]


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([5, 1], [[5, 1]], id="less-than-one-task"),
        pytest.param([10, 10], [[10], [10]], id="each-has-enough"),
        pytest.param([4, 4, 4, 9, 2], [[4, 4, 4], [9, 2]], id="neighbours"),
        pytest.param([30, 1], [[30], [1]], id="a-small-rest"),
    ],
)
def test_neighbours_share_a_task_until_it_has_enough_messages(lengths, groups):
    ranges = [QueueRange(MessageQueue("T", "b", n), 0, length) for n, length in enumerate(lengths)]

    gathered = gather_ranges(ranges, 10)

    assert [[len(range_) for range_ in group] for group in gathered] == groups
    assert [range_ for group in gathered for range_ in group] == ranges


def test_a_start_after_the_end_is_refused_by_queue():
    with pytest.raises(ValueError, match="T/broker-b/0 would be read from 6 to 5"):
        plan_ranges({A: 0, B: 6}, {A: 1, B: 5})


@given(st.lists(bounds, min_size=1, max_size=8), counts, counts)
def test_ranges_are_together_exactly_what_was_asked(pairs, min_partitions, max_records):
    queues = [MessageQueue("T", "broker-a", number) for number in range(len(pairs))]
    begin = {queue: pair[0] for queue, pair in zip(queues, pairs, strict=True)}
    end = {queue: pair[1] for queue, pair in zip(queues, pairs, strict=True)}

    ranges = plan_ranges(begin, end, min_partitions=min_partitions, max_records=max_records)

    assert [range_ for range_ in ranges if not len(range_)] == []
    for queue in queues:
        own = [range_ for range_ in ranges if range_.queue == queue]
        edges = [begin[queue], *(range_.end for range_ in own)]
        assert [range_.begin for range_ in own] == edges[:-1]
        assert edges[-1] == end[queue]
    assert max_records is None or all(len(range_) <= max_records for range_ in ranges)
    total = sum(end[queue] - begin[queue] for queue in queues)
    assert min_partitions is None or len(ranges) >= min(min_partitions, total) // 2
