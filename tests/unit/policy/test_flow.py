import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.policy.flow import (
    MIB,
    Cached,
    CachedByMember,
    Exceeded,
    MessageRate,
    PullThresholds,
    exceeded_threshold,
)

LIMITS = PullThresholds(max_count=10, max_size_bytes=100, max_span=5)
OF_MEMBER = PullThresholds(member_count=7, member_size_bytes=5 * MIB)
ONE = Cached(count=1, size_bytes=1)


def exceeded(cached, limits=LIMITS, **of_member):
    return exceeded_threshold(cached, limits, of_member=CachedByMember(**of_member))


def test_at_the_limits_a_queue_is_still_pulled():
    assert exceeded(Cached(count=10, size_bytes=100, span=5)) is None


@pytest.mark.parametrize(
    ("cached", "first"),
    [
        (Cached(count=11), Exceeded("max_count", 11, 10)),
        (Cached(size_bytes=101), Exceeded("max_size_bytes", 101, 100)),
        (Cached(span=6), Exceeded("max_span", 6, 5)),
        (Cached(count=11, size_bytes=101, span=6), Exceeded("max_count", 11, 10)),
        (Cached(size_bytes=101, span=6), Exceeded("max_size_bytes", 101, 100)),
    ],
)
def test_the_first_limit_exceeded_is_named(cached, first):
    assert exceeded(cached) == first


def test_in_order_the_span_has_no_limit():
    assert exceeded(Cached(span=10**9), PullThresholds(max_span=None)) is None


def test_defaults_are_those_of_java():
    assert PullThresholds() == PullThresholds(max_count=1000, max_size_bytes=100 * MIB, max_span=2000)


@pytest.mark.parametrize(
    ("queue_count", "max_count", "max_mib"), [(1, 7, 5), (2, 3, 2), (7, 1, 1), (100, 1, 1)]
)
def test_limits_of_a_member_are_shared_by_the_queues(queue_count, max_count, max_mib):
    shared = OF_MEMBER.shared(queue_count)

    assert (shared.max_count, shared.max_size_bytes // MIB, shared.max_span) == (max_count, max_mib, 2000)


@pytest.mark.parametrize(
    ("of_member", "first"),
    [
        ({"count": 7, "size_bytes": 5 * MIB}, None),
        ({"count": 8}, Exceeded("member_count", 8, 7)),
        ({"size_bytes": 5 * MIB + 1}, Exceeded("member_size_bytes", 5 * MIB + 1, 5 * MIB)),
    ],
)
def test_what_all_queues_hold_together_is_limited(of_member, first):
    assert exceeded(ONE, OF_MEMBER, **of_member) == first


def test_a_queue_that_holds_nothing_may_be_pulled_whatever_the_others_hold():
    assert exceeded(Cached(), OF_MEMBER, count=10**9, size_bytes=10**12) is None


def test_without_limits_of_a_member_those_of_a_queue_stay():
    assert LIMITS.shared(3) == LIMITS


def test_without_queues_there_is_nothing_to_share():
    assert OF_MEMBER.shared(0) == OF_MEMBER


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
