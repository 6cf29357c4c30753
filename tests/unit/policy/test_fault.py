import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import (
    BrokerError,
    ConnectionLostError,
    ProtocolError,
    RemotingConnectError,
    RemotingTimeoutError,
)
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import BrokerHealth
from rmqtools.policy.fault import (
    DETECT_INTERVAL_MS,
    ISOLATION_LATENCY_MS,
    FaultItem,
    LatencyFaultTolerance,
    LatencyTable,
    fault_of,
    select_tolerant,
)
from rmqtools.policy.select import QueueIndex

NOW = 1_000_000
QUEUES = [MessageQueue("T", broker, queue_id) for broker in "abc" for queue_id in range(2)]
LATENCIES = st.integers(0, 20_000)
FAULTS = st.dictionaries(
    st.sampled_from("abc"),
    st.builds(FaultItem, start_ms=st.sampled_from([None, NOW, NOW + 1]), is_reachable=st.booleans()),
)


def tolerance(**items: FaultItem) -> LatencyFaultTolerance:
    return LatencyFaultTolerance(enabled=True, items=items)


def test_nothing_is_written_down_while_it_is_off():
    off = LatencyFaultTolerance()
    off.update("a", 20_000, isolation=True, reachable=False, now_ms=NOW)

    assert (off.items, off.is_available("a", NOW), off.is_reachable("a")) == ({}, True, True)


def test_a_slow_broker_is_available_again_when_its_time_is_over():
    slow = tolerance()
    slow.update("a", 550, isolation=False, reachable=True, now_ms=NOW)

    assert [slow.is_available("a", NOW + later) for later in (0, 1999, 2000)] == [False, False, True]


def test_isolation_counts_as_ten_seconds_however_fast_it_failed():
    failed = tolerance()
    failed.update("a", 3, isolation=True, reachable=False, now_ms=NOW)

    assert failed.items["a"] == FaultItem(3, NOW + ISOLATION_LATENCY_MS, 0, False)


@given(st.lists(st.tuples(st.integers(0, 50_000), LATENCIES)))
def test_a_time_apart_is_never_shortened(attempts):
    table, broker = LatencyTable(), tolerance()
    for now, latency in attempts:
        broker.update("a", latency, isolation=False, reachable=True, now_ms=now)

    ends = [now + table.not_available_for(latency) for now, latency in attempts if latency >= 550]
    assert broker.items.get("a", FaultItem()).start_ms == max(ends, default=None)


def test_the_last_attempt_says_whether_a_broker_is_reachable():
    broker = tolerance()
    broker.update("a", 1, isolation=True, reachable=False, now_ms=NOW)
    gone = broker.is_reachable("a")
    broker.update("a", 1, isolation=False, reachable=True, now_ms=NOW)

    assert (gone, broker.is_reachable("a")) == (False, True)


def test_each_broker_is_looked_at_once_an_interval():
    known = tolerance(a=FaultItem(), b=FaultItem(check_ms=NOW + 1))

    assert [known.due_for_detection(NOW + later) for later in (0, 1, DETECT_INTERVAL_MS)] == [
        ["a"],
        ["b"],
        ["a"],
    ]


@pytest.mark.parametrize("reachable", [True, False])
def test_a_look_only_ever_makes_a_broker_reachable(reachable):
    known = tolerance(a=FaultItem(is_reachable=reachable), b=FaultItem(is_reachable=reachable))
    known.detected("a", True)
    known.detected("b", False)

    assert (known.is_reachable("a"), known.is_reachable("b")) == (True, reachable)


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


@given(FAULTS, st.sampled_from(["a", "b", "c", None]), st.integers(-(2**31), 2**31 - 1))
def test_available_elsewhere_comes_before_reachable_elsewhere_before_any(items, last, start):
    def rank(broker):
        item = items.get(broker, FaultItem())
        return 2 if broker == last else (0 if item.is_available(NOW) else 1 if item.is_reachable else 2)

    chosen = select_tolerant(QUEUES, QueueIndex(start), last, tolerance(**items), NOW)

    assert rank(chosen.broker_name) == min(rank(broker) for broker in "abc")


@given(st.integers(-(2**31), 2**31 - 1), st.sampled_from("abc"))
def test_while_it_is_off_only_the_broker_that_failed_last_is_avoided(start, last):
    off = LatencyFaultTolerance(items={name: FaultItem(start_ms=NOW + 1) for name in "abc"})

    assert select_tolerant(QUEUES, QueueIndex(start), last, off, NOW).broker_name != last


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
