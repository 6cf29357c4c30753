import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.policy.flow import MessageRate


def test_the_first_fetch_begins_at_once():
    assert MessageRate(10).delay(now=5.0) == 0


def test_a_fetch_waits_until_the_messages_before_it_are_paid_for():
    rate = MessageRate(10)

    rate.fetched(32, now=5.0)

    assert [rate.delay(now) for now in (5.0, 7.0, 8.2, 9.0)] == pytest.approx([3.2, 1.2, 0.0, 0.0])


def test_an_empty_answer_costs_nothing():
    rate = MessageRate(10)

    rate.fetched(0, now=5.0)

    assert rate.delay(now=5.0) == 0


def test_idle_time_is_not_saved_up():
    rate = MessageRate(10)
    rate.fetched(10, now=0.0)

    rate.fetched(10, now=100.0)

    assert rate.delay(now=100.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("limit", "queue_count", "expected"), [(1000, 4, 32), (100, 4, 25), (3, 4, 1), (0.1, 1, 1), (8, 0, 8)]
)
def test_fetches_of_all_queues_at_once_bring_a_seconds_worth(limit, queue_count, expected):
    assert MessageRate(limit).batch_size(32, queue_count) == expected


@given(st.lists(st.integers(0, 32), min_size=1, max_size=50), st.integers(1, 1000))
def test_all_fetches_together_keep_the_rate(counts, limit):
    rate, now = MessageRate(limit), 0.0

    for count in counts:
        now += rate.delay(now)
        rate.fetched(count, now)

    assert now + rate.delay(now) == pytest.approx(sum(counts) / limit)
