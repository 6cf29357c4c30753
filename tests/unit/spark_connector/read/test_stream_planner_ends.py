"""A stream with an end plans no offsets after it, and reports when it has reached it."""

from typing import Any

from rmqtools import MessageQueue
from spark_connector.read.bounds import Ends
from tests.unit.spark_connector.read.scripted_brokers import A, B, plan, query_on


def test_nothing_past_the_end_is_planned_however_much_is_stored(clock):
    ends = Ends({A: 7, B: 5}, is_final=True)
    brokers, planner, start = query_on({A: (0, 10), B: (0, 2)}, clock, start="earliest", ends=ends)
    first = plan(planner, start)
    brokers.queues = {A: (0, 20), B: (0, 9)}
    clock.advance(2)

    second = plan(planner, first)
    clock.advance(2)

    assert (first.next, second.next) == ({A: 7, B: 2}, {A: 7, B: 5})
    assert plan(planner, second) is None


def test_a_query_that_is_past_its_end_already_has_lost_nothing():
    _, planner, start = query_on({A: (0, 10)}, ends=Ends({A: 7}, is_final=True))

    assert plan(planner, start) is None


def test_a_queue_without_an_end_is_not_read(clock):
    ends = Ends({A: 7}, is_final=True)
    brokers, planner, start = query_on({A: (0, 10)}, clock, start="earliest", ends=ends)
    first = plan(planner, start)
    brokers.queues[B] = (0, 5)
    clock.advance(2)

    assert plan(planner, first) is None


def reported_with(ends: Ends | None) -> dict[str, Any]:
    """What a query with these ends reports of one queue that holds ten messages."""
    _, planner, _ = query_on({A: (0, 10)}, ends=ends)
    reported = planner.reported_latest()
    assert reported is not None
    return reported


def test_what_is_reported_ends_where_the_query_does_and_says_whether_that_is_its_end():
    reported = reported_with(Ends({A: 7}, is_final=False))

    assert (reported["offsets"], reported["final"]) == ({"T": {"a": {"0": 7}}}, False)
    for ends, is_final in (({A: 7}, True), ({A: 12}, False), ({A: 7, B: 1}, False)):
        assert reported_with(Ends(ends, is_final=True))["final"] is is_final
    assert "final" not in reported_with(None)


def is_final(planner):
    return (planner.reported_latest() or {})["final"]


def test_a_query_is_not_at_its_end_while_it_waits_for_a_broker_with_queues_that_it_reads(clock):
    away = MessageQueue("T", "b", 0)
    ends = Ends({A: 7, away: 5}, is_final=True)
    brokers, planner, start = query_on({A: (0, 10), away: (0, 5)}, clock, start="earliest", ends=ends)
    del brokers.queues[away]
    brokers.ends = Ends({A: 7}, is_final=True)
    clock.advance(2)

    end = plan(planner, start)

    assert (end.next, is_final(planner)) == ({A: 7, away: 0}, False)
    brokers.queues[away], brokers.ends = (0, 5), ends
    clock.advance(2)
    assert plan(planner, end).next == {A: 7, away: 5}
    assert is_final(planner)
