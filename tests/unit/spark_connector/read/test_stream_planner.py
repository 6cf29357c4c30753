"""The ends of micro-batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools import MessageQueue
from rmqtools.errors import DataLossError, RemotingTimeoutError, TopicNotFoundError
from spark_connector.options.batch_limits import Limits
from spark_connector.read.loss import QueueMark
from spark_connector.read.stream_offsets import StreamOffsets, batch_begin
from tests.unit.spark_connector.read.scripted_brokers import (
    A,
    B,
    C,
    ScriptedBrokers,
    plan,
    planner_on,
    query_on,
)


def test_the_first_offset_stays_however_often_it_is_asked_for():
    brokers, planner, first = query_on({A: (0, 10)})

    brokers.queues[A] = (0, 15)

    assert planner.initial_offset() == first == StreamOffsets({A: 10}, {A: 10}, {A: QueueMark(9, 9)})


def test_a_first_batch_run_again_by_another_process_begins_where_it_did():
    brokers, planner, start = query_on({A: (0, 10)})
    brokers.queues[A] = (0, 15)
    end = plan(planner, start)
    brokers.queues[A] = (0, 20)

    again = planner_on(brokers).initial_offset()

    assert again.next == {A: 20}
    assert batch_begin(again, end) == {A: 10}
    assert end.next == {A: 15}


def test_an_empty_first_batch_run_again_loses_nothing_afterwards():
    brokers, planner, end = query_on({A: (0, 10)})
    assert plan(planner, end) is None
    brokers.queues[A] = (0, 20)

    restarted = planner_on(brokers)
    assert batch_begin(restarted.initial_offset(), end) == {A: 10}
    assert batch_begin(end, plan(restarted, end)) == {A: 10}


def test_new_messages_and_new_queues_are_found_after_the_poll_interval(clock):
    brokers, planner, start = query_on({A: (0, 10)}, clock)
    assert plan(planner, start) is None
    brokers.queues |= {B: (3, 8), C: (0, 0)}
    clock.advance(1.1)

    end = plan(planner, start)

    assert end.next == {A: 10, B: 8, C: 0}
    assert batch_begin(start, end) == {A: 10, B: 3, C: 0}


def test_limits_hold_unless_spark_asks_for_everything():
    brokers, planner, start = query_on(
        {A: (0, 1000), B: (0, 10)}, start="earliest", limits=Limits(max_offsets=101)
    )

    assert plan(planner, start, limited=True).next == {A: 100, B: 1}
    assert plan(planner_on(brokers), start, limited=False).next == {A: 1000, B: 10}


def test_a_limit_of_bytes_takes_by_observed_sizes():
    given = {"start": "earliest", "sizes": {A: 100, B: 10}, "limits": Limits(max_bytes=10_010)}
    _, planner, start = query_on({A: (0, 1000), B: (0, 10)}, **given)

    assert plan(planner, start).next == {A: 100, B: 1}


def test_a_small_batch_waits_until_there_is_enough_or_time_is_up(clock):
    brokers, planner, start = query_on({A: (0, 10)}, clock, limits=Limits(min_offsets=5, max_delay=60))
    brokers.queues[A] = (0, 11)
    first = plan(planner, start)
    assert first.next == {A: 11}  # Spark runs a first batch anyway

    brokers.queues[A] = (0, 15)
    clock.advance(59)
    assert plan(planner, first) is None
    clock.advance(1)
    second = plan(planner, first)
    assert second.next == {A: 15}

    brokers.queues[A] = (0, 20)
    assert plan(planner, second).next == {A: 20}


def test_an_empty_first_batch_is_the_one_that_the_next_waits_after(clock):
    brokers, planner, start = query_on({A: (0, 10)}, clock, limits=Limits(min_offsets=5, max_delay=60))
    assert plan(planner, start) is None

    brokers.queues[A] = (0, 14)
    clock.advance(59)
    assert plan(planner, start) is None
    clock.advance(1)
    assert plan(planner, start).next == {A: 14}


def test_everything_available_now_is_what_was_there_at_the_start():
    brokers = ScriptedBrokers({A: (0, 10)}, start="earliest")
    planner = planner_on(brokers, limits=Limits(max_offsets=4, min_offsets=100))
    planner.freeze()
    brokers.queues |= {A: (0, 50), B: (0, 5)}

    ends = [planner.initial_offset()]
    while (end := plan(planner, ends[-1])) is not None:
        ends.append(end)

    assert [end.next for end in ends] == [{A: 0}, {A: 4}, {A: 8}, {A: 10}]


def test_a_start_behind_what_was_frozen_is_its_end(monkeypatch):
    brokers = ScriptedBrokers({A: (0, 10)})
    planner = planner_on(brokers)
    planner.freeze()
    monkeypatch.setattr(brokers, "resolve_start", lambda stored: {A: 12})

    start = planner.initial_offset()

    assert start.next == {A: 10}
    assert plan(planner, start) is None


@pytest.mark.parametrize(
    ("stored", "begin", "end"),
    [
        pytest.param({A: (7, 20)}, {A: 7}, {A: 20}, id="expired"),
        pytest.param({A: (7, 7)}, {A: 7}, {A: 7}, id="expired-to-the-end"),
        pytest.param({A: (0, 4)}, {A: 4}, {A: 4}, id="shrunk"),
        pytest.param({B: (0, 2)}, {A: 5, B: 0}, {A: 5, B: 2}, id="gone-and-a-new-one"),
    ],
)
def test_loss_is_passed_over_on_request_and_logged_once(stored, begin, end, caplog):
    planner = planner_on(ScriptedBrokers(stored), fail_on_data_loss=False)
    start = StreamOffsets({A: 5})

    planned = plan(planner, start)
    assert [plan(planner, planned) for _ in range(2)] == [None, None]

    assert (batch_begin(start, planned), dict(planned.next)) == (begin, end)
    assert caplog.text.count("data_lost") == 1


def test_a_queue_that_comes_back_is_read_on_where_it_was(clock):
    brokers = ScriptedBrokers({B: (0, 2)})
    planner = planner_on(brokers, clock, fail_on_data_loss=False)
    without = plan(planner, StreamOffsets({A: 5}))
    brokers.queues[A] = (0, 9)

    back = plan(planner, without)

    assert (batch_begin(without, back)[A], back.next[A]) == (5, 9)


def test_a_queue_that_is_gone_though_its_broker_is_up_is_a_loss_at_the_second_look(clock):
    brokers = ScriptedBrokers({})
    planner = planner_on(brokers, clock)
    assert plan(planner, StreamOffsets({A: 5})) is None  # the broker may have come back between two questions
    clock.advance(1)

    with pytest.raises(DataLossError, match="T/a/0 is gone"):
        plan(planner, StreamOffsets({A: 5}))


def test_the_queues_of_a_broker_that_is_away_are_waited_for_and_then_a_loss(clock):
    other = MessageQueue("T", "b", 0)
    brokers = ScriptedBrokers({A: (0, 9), other: (0, 3)})
    planner = planner_on(brokers, clock)
    start = StreamOffsets({A: 5, other: 1}, {A: 5, other: 1})
    del brokers.queues[other]  # b went, and its queues with it; a is up

    without = plan(planner, start)
    assert without.next == {A: 9, other: 1}
    brokers.queues[other] = (0, 4)
    clock.advance(1)
    back = plan(planner, without)
    assert (batch_begin(without, back)[other], back.next[other]) == (1, 4)

    del brokers.queues[other]
    for _ in range(60):
        clock.advance(1)
        assert plan(planner, back) is None
    clock.advance(1)
    with pytest.raises(DataLossError, match="T/b/0 is gone"):
        plan(planner, back)


def test_a_run_over_what_is_there_now_does_not_wait_for_a_broker():
    planner = planner_on(ScriptedBrokers({A: (0, 9)}))
    planner.freeze()

    with pytest.raises(DataLossError, match="T/b/0 is gone"):
        plan(planner, StreamOffsets({A: 5, MessageQueue("T", "b", 0): 1}))


def test_a_new_query_over_what_is_there_now_says_what_is_missing():
    planner = planner_on(ScriptedBrokers({}, is_missing=True))
    planner.freeze()

    with pytest.raises(TopicNotFoundError):
        planner.initial_offset()


def test_a_broker_that_is_silent_when_asked_for_sizes_is_waited_for(clock, monkeypatch):
    brokers, planner, start = query_on(
        {A: (0, 100)}, clock, start="earliest", sizes={A: 10}, limits=Limits(max_bytes=100)
    )
    clock.advance(2)
    monkeypatch.setattr(brokers, "mean_bytes", silent)

    assert plan(planner, start) is None
    monkeypatch.undo()
    clock.advance(2)

    assert plan(planner, start).next == {A: 10}


def silent(*_: object) -> int:
    raise RemotingTimeoutError("no answer")


def test_what_is_reported_as_latest_costs_no_question():
    brokers = ScriptedBrokers({A: (0, 10)})
    planner = planner_on(brokers)
    assert planner.reported_latest() is None
    planner.initial_offset()
    asked = brokers.asked

    assert planner.reported_latest() == StreamOffsets({A: 10}).to_json()
    assert brokers.asked == asked


def test_a_query_waits_for_brokers_that_are_silent_and_gives_up_in_the_end(clock, caplog):
    brokers, planner, start = query_on({A: (0, 10)}, clock)
    brokers.is_silent = True

    for _ in range(60):
        assert plan(planner, start) is None
        clock.advance(1)

    with pytest.raises(RemotingTimeoutError):
        plan(planner, start)
    assert caplog.text.count("brokers_not_answering") == 1


def test_a_query_goes_on_when_brokers_answer_again(clock):
    brokers, planner, start = query_on({A: (0, 10)}, clock)
    for silent in (True, False, True):
        brokers.is_silent = silent
        clock.advance(40)
        assert plan(planner, start) is None

    brokers.queues[A], brokers.is_silent = (0, 20), False
    clock.advance(1)

    assert plan(planner, start).next == {A: 20}


def test_a_query_that_has_never_had_an_answer_does_not_wait():
    with pytest.raises(RemotingTimeoutError):
        plan(planner_on(ScriptedBrokers({}, is_silent=True)), StreamOffsets({A: 5}))


@given(st.data())
def test_batches_join_without_gap_or_overlap_whatever_the_brokers_do(data):
    brokers = ScriptedBrokers({A: (0, 0)}, start="earliest")
    planner = planner_on(brokers, limits=Limits(max_offsets=data.draw(st.integers(1, 50))), poll_interval=0)
    read = dict.fromkeys((A, B, C), 0)
    at = planner.initial_offset()
    for _ in range(data.draw(st.integers(1, 12))):
        for queue in data.draw(st.sets(st.sampled_from([A, B, C]))):
            first, next_ = brokers.queues.get(queue, (0, 0))
            brokers.queues[queue] = (first, next_ + data.draw(st.integers(0, 40)))
        if data.draw(st.booleans()):  # a restart; the first batch may have to be run again
            planner = planner_on(brokers, limits=planner.limits, poll_interval=0)
        end = plan(planner, at) or at
        for queue, begin in batch_begin(at, end).items():
            assert begin == read[queue] <= end.next[queue] <= brokers.queues[queue][1]
            read[queue] = end.next[queue]
        at = end
