from math import inf

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


@pytest.mark.parametrize(
    ("cached", "limits", "first"),
    [
        pytest.param(Cached(count=10, size_bytes=100, span=5), LIMITS, None, id="at-the-limits"),
        pytest.param(Cached(count=11), LIMITS, Exceeded("max_count", 11, 10), id="count"),
        pytest.param(Cached(size_bytes=101), LIMITS, Exceeded("max_size_bytes", 101, 100), id="bytes"),
        pytest.param(Cached(span=6), LIMITS, Exceeded("max_span", 6, 5), id="span"),
        pytest.param(
            *(Cached(count=11, size_bytes=101, span=6), LIMITS, Exceeded("max_count", 11, 10)),
            id="count-first",
        ),
        pytest.param(
            *(Cached(size_bytes=101, span=6), LIMITS, Exceeded("max_size_bytes", 101, 100)), id="then-bytes"
        ),
        pytest.param(Cached(span=10**9), PullThresholds(max_span=None), None, id="in-order-any-span"),
    ],
)
def test_the_first_limit_exceeded_is_named(cached, limits, first):
    assert exceeded(cached, limits) == first


def test_defaults_are_those_of_java():
    assert PullThresholds() == PullThresholds(max_count=1000, max_size_bytes=100 * MIB, max_span=2000)


@pytest.mark.parametrize(
    ("queue_count", "max_count", "max_mib"), [(1, 7, 5), (2, 3, 2), (7, 1, 1), (100, 1, 1)]
)
def test_limits_of_a_member_are_shared_by_the_queues(queue_count, max_count, max_mib):
    shared = OF_MEMBER.shared(queue_count)

    assert (shared.max_count, shared.max_size_bytes // MIB, shared.max_span) == (max_count, max_mib, 2000)


@pytest.mark.parametrize(
    ("cached", "of_member", "first"),
    [
        (ONE, {"count": 7, "size_bytes": 5 * MIB}, None),
        (ONE, {"count": 8}, Exceeded("member_count", 8, 7)),
        (ONE, {"size_bytes": 5 * MIB + 1}, Exceeded("member_size_bytes", 5 * MIB + 1, 5 * MIB)),
        pytest.param(Cached(), {"count": 10**9, "size_bytes": 10**12}, None, id="a-queue-without-messages"),
    ],
)
def test_what_all_queues_hold_together_is_limited(cached, of_member, first):
    assert exceeded(cached, OF_MEMBER, **of_member) == first


def test_without_limits_of_a_member_those_of_a_queue_stay():
    assert LIMITS.shared(3) == LIMITS


def test_without_queues_there_is_nothing_to_share():
    assert OF_MEMBER.shared(0) == OF_MEMBER


@pytest.mark.parametrize(
    ("fetches", "now", "delay"),
    [
        pytest.param([], 5.0, 0.0, id="the-first-begins-at-once"),
        pytest.param([(32, 5.0)], 5.0, 3.2, id="until-the-messages-before-are-paid-for"),
        pytest.param([(32, 5.0)], 7.0, 1.2, id="some-are-paid-for"),
        pytest.param([(32, 5.0)], 8.2, 0.0, id="all-are-paid-for"),
        pytest.param([(32, 5.0)], 9.0, 0.0, id="long-ago"),
        pytest.param([(0, 5.0)], 5.0, 0.0, id="an-empty-answer-costs-nothing"),
        pytest.param([(10, 0.0), (10, 100.0)], 100.0, 1.0, id="idle-time-is-not-saved-up"),
    ],
)
def test_a_fetch_waits_until_its_rate_allows_it(fetches, now, delay):
    rate = MessageRate(10)
    for count, fetched_at in fetches:
        rate.fetched(count, now=fetched_at)

    assert rate.delay(now) == pytest.approx(delay)


@pytest.mark.parametrize(
    ("limit", "queue_count", "expected"),
    [(1000, 4, 32), (100, 4, 25), (3, 4, 1), (0.1, 1, 1), (8, 0, 8), (inf, 4, 32)],
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
