"""A stream with an end plans no offsets after it, and reports when it has reached it."""

from typing import Any

from spark_connector.read.bounds import Ends
from tests.unit.spark_connector.read.scripted_brokers import A, B, ScriptedBrokers, plan, planner_on


def test_nothing_past_the_end_is_planned_however_much_is_stored(clock):
    brokers = ScriptedBrokers(
        {A: (0, 10), B: (0, 2)}, start="earliest", ends=Ends({A: 7, B: 5}, is_final=True)
    )
    planner = planner_on(brokers, clock)
    first = plan(planner, planner.initial_offset())
    brokers.queues = {A: (0, 20), B: (0, 9)}
    clock.advance(2)

    second = plan(planner, first)
    clock.advance(2)

    assert (first.next, second.next) == ({A: 7, B: 2}, {A: 7, B: 5})
    assert plan(planner, second) is None


def test_a_query_that_is_past_its_end_already_has_lost_nothing():
    brokers = ScriptedBrokers({A: (0, 10)}, ends=Ends({A: 7}, is_final=True))
    planner = planner_on(brokers)

    assert plan(planner, planner.initial_offset()) is None


def test_a_queue_without_an_end_is_not_read(clock):
    brokers = ScriptedBrokers({A: (0, 10)}, start="earliest", ends=Ends({A: 7}, is_final=True))
    planner = planner_on(brokers, clock)
    first = plan(planner, planner.initial_offset())
    brokers.queues[B] = (0, 5)
    clock.advance(2)

    assert plan(planner, first) is None


def latest(planner) -> dict[str, Any]:
    reported = planner.reported_latest()
    assert reported is not None
    return reported


def test_what_is_reported_ends_where_the_query_does_and_says_whether_that_is_its_end():
    brokers = ScriptedBrokers({A: (0, 10)}, ends=Ends({A: 7}, is_final=False))
    planner = planner_on(brokers)
    planner.initial_offset()

    reported = latest(planner)

    assert (reported["offsets"], reported["final"]) == ({"T": {"a": {"0": 7}}}, False)
    for ends, is_final in (({A: 7}, True), ({A: 12}, False), ({A: 7, B: 1}, False)):
        planned = planner_on(ScriptedBrokers({A: (0, 10)}, ends=Ends(ends, is_final=True)))
        planned.initial_offset()
        assert latest(planned)["final"] is is_final
    unlimited = planner_on(ScriptedBrokers({A: (0, 10)}))
    unlimited.initial_offset()
    assert "final" not in latest(unlimited)
