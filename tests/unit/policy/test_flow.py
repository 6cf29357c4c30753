import pytest

from rmqtools.policy.flow import MIB, Cached, Exceeded, PullThresholds, exceeded_threshold

LIMITS = PullThresholds(max_count=10, max_size_bytes=100, max_span=5)


def test_at_the_limits_a_queue_is_still_pulled():
    assert exceeded_threshold(Cached(count=10, size_bytes=100, span=5), LIMITS) is None


@pytest.mark.parametrize(
    ("cached", "exceeded"),
    [
        (Cached(count=11), Exceeded("max_count", 11, 10)),
        (Cached(size_bytes=101), Exceeded("max_size_bytes", 101, 100)),
        (Cached(span=6), Exceeded("max_span", 6, 5)),
        (Cached(count=11, size_bytes=101, span=6), Exceeded("max_count", 11, 10)),
        (Cached(size_bytes=101, span=6), Exceeded("max_size_bytes", 101, 100)),
    ],
)
def test_the_first_limit_exceeded_is_named(cached, exceeded):
    assert exceeded_threshold(cached, LIMITS) == exceeded


def test_in_order_the_span_has_no_limit():
    assert exceeded_threshold(Cached(span=10**9), PullThresholds(max_span=None)) is None


def test_defaults_are_those_of_java():
    assert PullThresholds() == PullThresholds(max_count=1000, max_size_bytes=100 * MIB, max_span=2000)


@pytest.mark.parametrize(
    ("queue_count", "max_count", "max_mib"), [(1, 7, 5), (2, 3, 2), (7, 1, 1), (100, 1, 1)]
)
def test_limits_of_a_topic_are_shared_by_the_queues(queue_count, max_count, max_mib):
    shared = LIMITS.shared(queue_count, topic_count=7, topic_size_bytes=5 * MIB)

    assert (shared.max_count, shared.max_size_bytes // MIB, shared.max_span) == (max_count, max_mib, 5)


def test_without_limits_of_a_topic_those_of_a_queue_stay():
    assert LIMITS.shared(3) == LIMITS


def test_without_queues_there_is_nothing_to_share():
    assert LIMITS.shared(0, topic_count=7, topic_size_bytes=7) == LIMITS
