import random

from rmqtools.policy.backoff import FIRST_PULL_PAUSE, ConnectBackoff, PullBackoff


def pull_backoff() -> PullBackoff:
    return PullBackoff(3.0, random.Random(1).random)


def test_the_first_answer_without_progress_has_no_pause_and_each_further_one_doubles_it_up_to_the_longest():
    backoff = pull_backoff()
    found = [backoff.note("q", 0.0) for _ in range(1000)]

    assert found[0] == 0.0
    for number, pause in enumerate(found[1:]):
        whole = min(3.0, FIRST_PULL_PAUSE * 2.0 ** min(number, 32))
        assert whole <= pause <= 1.25 * whole
    assert len(set(found[-100:])) > 90  # jitter


def test_a_busy_broker_is_left_alone_from_its_first_answer_on():
    assert pull_backoff().note("q", 0.0, paused=True) >= FIRST_PULL_PAUSE


def test_progress_ends_the_row_of_one_queue_only():
    backoff = pull_backoff()
    for queue in ("q", "r"):
        for _ in range(5):
            backoff.note(queue, 10.0)
    backoff.ended("q")

    assert backoff.delay("q", 10.0) == 0.0
    assert backoff.delay("r", 10.0) > 0.0
    assert backoff.delay("r", 14.0) == 0.0
    assert backoff.note("q", 10.0) == 0.0


def refused(times: int, *, at: float = 10.0) -> ConnectBackoff:
    backoff = ConnectBackoff()
    for _ in range(times):
        backoff.failed("a:1", "refused", at)
    return backoff


def test_after_one_failure_an_address_may_be_tried_at_once():
    assert refused(0).reason("a:1", 10.0) is None
    assert refused(1).reason("a:1", 10.0) is None


def test_after_two_failures_an_address_waits_and_others_do_not():
    backoff = refused(2)

    assert backoff.reason("a:1", 10.04) == "refused"
    assert backoff.reason("a:1", 10.05) is None
    assert backoff.reason("b:1", 10.0) is None


def test_the_pause_doubles_up_to_a_second():
    pauses = [
        next(p / 100 for p in range(200) if refused(n).reason("a:1", 10 + p / 100) is None) for n in range(9)
    ]

    assert pauses == [0, 0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_a_connection_ends_the_pause_and_the_next_one_is_short_again():
    backoff = refused(6)

    backoff.connected("a:1")

    assert backoff.reason("a:1", 10.0) is None
    backoff.failed("a:1", "refused", 10.0)
    assert backoff.reason("a:1", 10.0) is None
