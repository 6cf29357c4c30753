import pytest

from rmqtools.errors import (
    BrokerError,
    ConnectionLostError,
    ProtocolError,
    RemotingConnectError,
    RemotingTimeoutError,
)
from rmqtools.model.result import BrokerHealth
from rmqtools.policy.fault import (
    DETECT_INTERVAL_MS,
    FaultItem,
    LatencyFaultTolerance,
    fault_of,
)

NOW = 1_000_000


def tolerance(**items: FaultItem) -> LatencyFaultTolerance:
    return LatencyFaultTolerance(enabled=True, items=items)


@pytest.mark.parametrize(
    ("latency_ms", "period_ms"),
    [
        *((0, 0), (549, 0), (550, 2000), (1799, 2000), (1800, 5000), (2999, 5000), (3000, 6000)),
        *((4999, 6000), (5000, 10000), (14999, 10000), (15000, 30000), (100_000, 30000)),
    ],
)
def test_a_slow_broker_is_available_again_when_its_time_is_over(latency_ms, period_ms):
    slow = tolerance()
    slow.update("a", latency_ms, isolation=False, reachable=True, now_ms=NOW)

    looks = (NOW, NOW + period_ms - 1, NOW + period_ms)
    assert [slow.is_available("a", look) for look in looks] == [not period_ms, not period_ms, True]


def test_a_broker_that_failed_is_isolated_as_one_that_took_ten_seconds():
    failed = tolerance()
    failed.update("a", 7, isolation=True, reachable=False, now_ms=NOW)

    assert [failed.is_available("a", NOW + later) for later in (9_999, 10_000)] == [False, True]


def test_each_broker_is_looked_at_once_an_interval():
    known = tolerance(a=FaultItem(), b=FaultItem(check_ms=NOW + 1))

    assert [known.due_for_detection(NOW + later) for later in (0, 1, DETECT_INTERVAL_MS)] == [
        ["a"],
        ["b"],
        ["a"],
    ]


def test_a_broker_without_address_is_forgotten_and_a_late_answer_does_not_bring_it_back():
    known = tolerance(a=FaultItem(is_reachable=False))
    known.detected("a", None)
    known.detected("a", True)

    assert known.items == {}


def test_health_is_told_in_seconds():
    known = tolerance(b=FaultItem(1500, NOW + 2500, 0, False), a=FaultItem(7, NOW - 1))

    assert known.health(NOW) == {
        "a": BrokerHealth(latency=0.007, is_available=True, is_reachable=True, available_in=0),
        "b": BrokerHealth(latency=1.5, is_available=False, is_reachable=False, available_in=2.5),
    }


@pytest.mark.parametrize("detector_runs", [True, False])
@pytest.mark.parametrize("error", [None, ProtocolError("x")])
def test_an_answer_and_what_is_no_fault_of_the_broker_do_not_isolate(error, detector_runs):
    assert fault_of(error, detector_runs=detector_runs) == (False, True)


@pytest.mark.parametrize("detector_runs", [True, False])
def test_a_refusal_isolates_and_makes_unreachable(detector_runs):
    assert fault_of(BrokerError(2, "busy", "h:1"), detector_runs=detector_runs) == (True, False)


@pytest.mark.parametrize("kind", [RemotingConnectError, RemotingTimeoutError, ConnectionLostError])
@pytest.mark.parametrize("detector_runs", [True, False])
def test_a_silent_broker_is_unreachable_only_where_the_detector_can_find_it_again(kind, detector_runs):
    assert fault_of(kind("x"), detector_runs=detector_runs) == (True, not detector_runs)


def test_the_last_attempt_says_whether_a_broker_is_reachable():
    broker = tolerance()
    broker.update("a", 1, isolation=True, reachable=False, now_ms=NOW)
    gone = broker.is_reachable("a")
    broker.update("a", 1, isolation=False, reachable=True, now_ms=NOW)

    assert (gone, broker.is_reachable("a")) == (False, True)
