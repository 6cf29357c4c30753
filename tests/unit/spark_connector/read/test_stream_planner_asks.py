"""How often a stream's planner asks brokers."""

import pytest

from spark_connector.options.batch_limits import Limits
from spark_connector.read.stream_offsets import StreamOffsets
from tests.unit.spark_connector.read.scripted_brokers import A, B, ScriptedBrokers, plan, planner_on, query_on


def test_an_idle_query_asks_brokers_once_per_poll_interval(clock):
    brokers, planner, start = query_on({A: (0, 10)}, clock, poll_interval=1.0)
    assert plan(planner, start) is None
    asked, began = brokers.asked, clock.monotonic()

    for _ in range(40):
        clock.advance(0.1)  # Spark's own pause
        assert plan(planner, start) is None

    assert (brokers.asked - asked, clock.monotonic() - began) == (40, pytest.approx(40))


def test_no_new_data_is_said_of_everything_stored_before_the_question(clock):
    brokers, planner, start = query_on({A: (0, 10)}, clock, poll_interval=10.0)
    assert plan(planner, start) is None
    clock.advance(1.0)
    brokers.queues[A] = (0, 11)
    asked_at = clock.monotonic()

    end = plan(planner, start)

    assert (end.next, clock.monotonic() - asked_at) == ({A: 11}, pytest.approx(9.0))


def test_a_source_without_data_does_not_hold_up_the_batches_of_another_source(clock):
    brokers, planner, start = query_on({A: (0, 10)}, clock, poll_interval=60.0)
    began = clock.monotonic()

    for _ in range(3):
        assert plan(planner, start) is None
        planner.note_batch()

    assert clock.monotonic() == began
    brokers.queues[A] = (0, 11)
    assert plan(planner, start).next == {A: 11}


def test_after_the_last_batch_of_another_source_the_query_is_idle_again(clock):
    _, planner, start = query_on({A: (0, 10)}, clock, poll_interval=60.0)
    planner.note_batch()
    plan(planner, start)
    began = clock.monotonic()

    plan(planner, start)

    assert clock.monotonic() - began == 60.0


def test_a_run_over_what_is_there_now_never_waits(clock):
    brokers = ScriptedBrokers({A: (0, 10)}, start="earliest")
    planner = planner_on(brokers, clock, limits=Limits(max_offsets=4), poll_interval=60.0)
    planner.freeze()
    began, end = clock.monotonic(), planner.initial_offset()

    for _ in range(3):
        end = plan(planner, end)
    assert plan(planner, end) is None
    assert plan(planner, end) is None

    assert clock.monotonic() == began


def test_a_backlog_known_to_fill_the_next_batches_is_read_without_asking(clock):
    brokers, planner, end = query_on(
        {A: (0, 10), B: (0, 10)}, clock, start="earliest", limits=Limits(max_offsets=4)
    )
    asked, sums = brokers.asked, []

    for _ in range(5):
        end = plan(planner, end)
        sums.append(sum(end.next.values()))
    assert (sums, brokers.asked) == ([4, 8, 12, 16, 20], asked)
    assert plan(planner, end) is None
    assert brokers.asked == asked + 1


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"seconds": 1.0}, id="a-second-has-passed"),
        pytest.param({"max_offsets": 17}, id="fewer-are-known-than-a-batch-takes"),
        pytest.param({"max_bytes": 1000}, id="sizes-count"),
        pytest.param({"limited": False}, id="all-there-is-is-wanted"),
        pytest.param({"start": StreamOffsets({A: 2})}, id="the-start-lacks-a-queue"),
    ],
)
def test_brokers_are_asked_where_the_known_backlog_does_not_say_enough(clock, case):
    brokers = ScriptedBrokers({A: (0, 10), B: (0, 10)}, start="earliest", sizes={A: 10, B: 10})
    limits = Limits(max_offsets=case.get("max_offsets", 4), max_bytes=case.get("max_bytes"))
    planner = planner_on(brokers, clock, limits=limits, poll_interval=60.0)
    planner.initial_offset()
    asked = brokers.asked
    clock.advance(case.get("seconds", 0.0))

    plan(planner, case.get("start", StreamOffsets({A: 2, B: 2})), limited=case.get("limited", True))

    assert brokers.asked == asked + 1
