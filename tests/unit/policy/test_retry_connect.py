from rmqtools.policy.retry import ConnectBackoff


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
