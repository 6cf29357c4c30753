"""A stream's planner and topics that are deleted, changed or recreated."""

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import DataLossError
from spark_connector.options.batch_limits import Limits
from spark_connector.read.loss import QueueMark
from spark_connector.read.stream_offsets import StreamOffsets, batch_begin
from tests.unit.spark_connector.read.scripted_brokers import A, B, ScriptedBrokers, plan, planner_on, query_on

FEW = Limits(min_offsets=100, max_delay=60)
OTHER = MessageQueue("U", "a", 0)


def checkpoint(brokers):
    """The end of a batch that read everything."""
    planner = planner_on(brokers)
    planner.initial_offset()
    return plan(planner, StreamOffsets({}, {}))


def test_the_end_of_a_batch_marks_the_message_before_it():
    brokers = ScriptedBrokers({A: (0, 10), B: (0, 0)}, times={A: 1000})

    assert checkpoint(brokers).marks == {A: QueueMark(9, 1009)}


def test_marks_are_renewed_after_ten_seconds_and_those_of_idle_queues_cost_nothing(clock, monkeypatch):
    brokers = ScriptedBrokers({A: (0, 10), B: (0, 5)}, start="earliest")
    planner, asked = planner_on(brokers, clock, poll_interval=0), []
    answering = brokers.store_times
    monkeypatch.setattr(brokers, "store_times", lambda now: asked.append(dict(now)) or answering(now))
    end = plan(planner, planner.initial_offset())
    for latest in (11, 12):
        brokers.queues[A] = (0, latest)
        clock.advance(9)
        end = plan(planner, end)

    assert asked == [{A: 9, B: 4}, {A: 11}]
    assert end.marks == {A: QueueMark(11, 11), B: QueueMark(4, 4)}


def test_a_topic_made_anew_is_recognised_by_a_restarted_query_before_a_row_of_it_is_read():
    brokers = ScriptedBrokers({A: (0, 10)}, times={A: 1000})
    start = checkpoint(brokers)
    brokers.queues, brokers.times = {A: (0, 25)}, {A: 2000}

    with pytest.raises(DataLossError, match="the topic of T/a/0 was made anew"):
        plan(planner_on(brokers), start)


def test_a_topic_made_anew_is_read_from_its_beginning_on_request_and_once():
    brokers = ScriptedBrokers({A: (0, 10)}, times={A: 1000})
    start = checkpoint(brokers)
    brokers.queues, brokers.times = {A: (3, 25)}, {A: 2000}
    planner = planner_on(brokers, fail_on_data_loss=False)

    end = plan(planner, start)

    assert (batch_begin(start, end), end.next, end.marks) == ({A: 3}, {A: 25}, {A: QueueMark(24, 2024)})
    assert plan(planner, end) is None
    assert plan(planner_on(brokers), end) is None


def test_a_topic_made_anew_is_not_forgotten_while_a_batch_is_not_due(clock):
    brokers = ScriptedBrokers({A: (0, 10)}, times={A: 1000})
    planner = planner_on(brokers, clock, fail_on_data_loss=False, limits=FEW)
    start = plan(planner, StreamOffsets({}, {}))
    del brokers.queues[A]
    clock.advance(2)
    assert plan(planner, start) is None
    brokers.queues[A], brokers.times = (0, 12), {A: 2000}
    clock.advance(2)
    assert plan(planner, start) is None
    clock.advance(60)

    assert batch_begin(start, plan(planner, start)) == {A: 0}


def test_a_topic_deleted_and_made_anew_while_the_query_runs_is_recognised(clock):
    given = {"times": {A: 1000}, "start": "earliest", "fail_on_data_loss": False}
    brokers, planner, new = query_on({A: (0, 10), B: (0, 1)}, clock, **given)
    start = plan(planner, new)
    del brokers.queues[A]
    clock.advance(2)
    assert plan(planner, start) is None
    brokers.queues[A], brokers.times = (0, 25), {A: 2000}
    clock.advance(2)

    assert batch_begin(start, plan(planner, start))[A] == 0


def test_a_topic_made_anew_between_two_batches_that_are_a_minute_apart_is_recognised(clock):
    brokers, planner, new = query_on({A: (0, 10)}, clock, times={A: 1000}, start="earliest")
    start = plan(planner, new)
    brokers.queues, brokers.times = {A: (0, 25)}, {A: 2000}
    clock.advance(60)

    with pytest.raises(DataLossError, match="the topic of T/a/0 was made anew"):
        plan(planner, start)


def test_a_mark_behind_the_end_of_a_shrunk_queue_is_dropped():
    brokers = ScriptedBrokers({A: (0, 10)}, times={A: 1000})
    start = checkpoint(brokers)
    brokers.queues = {A: (0, 4)}

    end = plan(planner_on(brokers, fail_on_data_loss=False), start)

    assert (end.next, end.marks) == ({A: 4}, {A: QueueMark(3, 1003)})


def test_a_batch_of_an_earlier_run_is_not_read_from_a_topic_made_anew():
    brokers, planner, start = query_on({A: (0, 10)}, times={A: 1000}, start="earliest")
    end = plan(planner, start)
    assert planner.ranges(start, end) == ({A: 0}, {A: 10})
    brokers.queues, brokers.times = {A: (0, 25)}, {A: 2000}

    with pytest.raises(DataLossError, match="made anew"):
        planner_on(brokers).ranges(start, end)
    restarted = planner_on(brokers, fail_on_data_loss=False)
    assert restarted.ranges(start, end) == ({A: 0}, {A: 0})
    assert batch_begin(end, plan(restarted, end)) == {A: 0}


def test_a_batch_of_an_earlier_run_is_read_again_where_nothing_changed():
    brokers, planner, start = query_on({A: (0, 10)}, start="earliest")
    end = plan(planner, start)
    brokers.queues[A] = (0, 20)

    assert planner_on(brokers).ranges(start, end) == ({A: 0}, {A: 10})


def test_another_topic_under_an_old_checkpoint_is_refused_before_a_row_of_it_is_read():
    brokers = ScriptedBrokers({OTHER: (0, 10)}, selected="U")

    with pytest.raises(DataLossError, match="T/a/0 is no longer selected by the options"):
        plan(planner_on(brokers), StreamOffsets({A: 5}))
    with pytest.raises(DataLossError, match="T/a/0 is no longer selected by the options"):
        planner_on(brokers).ranges(StreamOffsets({A: 5}), StreamOffsets({A: 8}))


def test_another_topic_under_an_old_checkpoint_is_read_on_request(caplog):
    planner = planner_on(ScriptedBrokers({OTHER: (0, 10)}, selected="U"), fail_on_data_loss=False)

    end = plan(planner, StreamOffsets({A: 5}))

    assert end.next == {A: 5, OTHER: 10}
    assert "no longer selected" in caplog.text


def test_a_queue_count_that_shrinks_does_not_end_the_query(clock):
    brokers, planner, start = query_on({A: (0, 10), B: (0, 0)}, clock)
    del brokers.queues[B]

    for _ in range(3):
        clock.advance(61)
        assert plan(planner, start) is None


def test_a_queue_that_shrinks_away_with_messages_to_be_read_ends_the_query(clock):
    brokers, planner, start = query_on({A: (0, 10), B: (0, 0)}, clock, limits=FEW)
    for queues in ({A: (0, 10), B: (0, 0)}, {A: (0, 10), B: (0, 3)}, {A: (0, 10)}):
        brokers.queues = queues
        clock.advance(2)
        assert plan(planner, start) is None
    clock.advance(2)

    with pytest.raises(DataLossError, match="T/a/1 is gone"):
        plan(planner, start)


@pytest.mark.parametrize("fail", [True, False])
def test_a_queue_whose_broker_comes_back_was_awaited_and_is_not_logged_as_lost(clock, caplog, fail):
    away = MessageQueue("T", "b", 0)
    brokers, planner, start = query_on({A: (0, 10), away: (0, 5)}, clock, fail_on_data_loss=fail)
    del brokers.queues[away]
    for _ in range(2):
        clock.advance(2)
        assert plan(planner, start) is None
    brokers.queues[away] = (0, 5)
    clock.advance(2)
    plan(planner, start)

    assert [message.split()[0] for message in caplog.messages] == ["queue_awaited"]


def test_a_queue_whose_broker_stays_away_is_logged_as_lost_after_a_minute_and_once(clock, caplog):
    away = MessageQueue("T", "b", 0)
    given = {"start": "earliest", "fail_on_data_loss": False}
    brokers, planner, new = query_on({A: (0, 10), away: (0, 5)}, clock, **given)
    start = plan(planner, new)
    del brokers.queues[away]
    for _ in range(8):
        clock.advance(12)
        plan(planner, start)

    assert [message.split()[0] for message in caplog.messages] == ["queue_awaited", "data_lost"]
