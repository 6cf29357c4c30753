import random

from rmqtools.policy.retry import FIRST_PULL_PAUSE, PullBackoff


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
