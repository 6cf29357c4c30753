"""Micro-batches on PySpark 4.0 and 4.1, which asks for a batch's end before it tells the begin."""

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError, DataLossError, RemotingTimeoutError
from spark_connector.read.bounds import Ends
from spark_connector.read.stream_offsets import StreamOffsets
from tests.unit.spark_connector.read.scripted_brokers import A, B, C, ScriptedBrokers
from tests.unit.spark_connector.read.scripted_brokers import early_planner_on as planner_on


def stored(end):
    """As Spark gives it back from the checkpoint."""
    return StreamOffsets.from_json(end.to_json())


def restarted_on(brokers, last):
    """A planner as Spark starts it with a checkpoint: an empty batch at the last offsets comes first."""
    planner = planner_on(brokers)
    planner.ranges(stored(last), stored(last))
    return planner


def test_a_new_query_begins_at_its_options_although_spark_asks_for_the_end_first():
    planner = planner_on(ScriptedBrokers({A: (0, 5), B: (3, 7)}, start="earliest"))

    end = planner.latest_offset()
    start = planner.initial_offset()

    assert planner.ranges(start, end) == ({A: 0, B: 3}, {A: 5, B: 7})


def test_a_first_batch_that_is_repeated_by_a_new_process_begins_where_it_did():
    brokers = ScriptedBrokers({A: (0, 5)})
    planner = planner_on(brokers)
    end = planner.latest_offset()
    planner.ranges(planner.initial_offset(), end)
    brokers.queues[A] = (0, 9)

    restarted = planner_on(brokers)

    assert restarted.ranges(restarted.initial_offset(), stored(end)) == ({A: 5}, {A: 5})
    assert restarted.ranges(stored(end), restarted.latest_offset()) == ({A: 5}, {A: 9})


def test_a_restarted_query_begins_at_its_checkpoint_and_new_queues_at_their_first_message():
    brokers = ScriptedBrokers({A: (0, 9), B: (2, 4)})
    planner = planner_on(brokers)

    assert planner.ranges(StreamOffsets({A: 5}), planner.latest_offset()) == ({A: 5, B: 2}, {A: 9, B: 4})


def test_a_queue_that_appears_while_the_query_runs_is_read_from_its_first_message(clock):
    brokers = ScriptedBrokers({A: (0, 5)})
    planner = planner_on(brokers, clock)
    first = planner.latest_offset()
    planner.ranges(planner.initial_offset(), first)
    brokers.queues = {A: (0, 6), C: (0, 2)}
    clock.advance(1)

    assert planner.ranges(first, planner.latest_offset()) == ({A: 5, C: 0}, {A: 6, C: 2})


def test_a_queue_that_was_away_at_a_restart_continues_where_it_was(clock):
    brokers = ScriptedBrokers({A: (0, 9)}, names=set())
    planner = planner_on(brokers, clock)
    first = planner.latest_offset()
    planner.ranges(StreamOffsets({A: 5, B: 4}), first)
    brokers.queues = {A: (0, 9), B: (0, 6)}
    clock.advance(1)

    second = planner.latest_offset()

    assert planner.ranges(first, second) == ({A: 9, B: 4}, {A: 9, B: 6})
    assert planner_on(brokers).ranges(stored(first), stored(second)) == ({A: 9, B: 4}, {A: 9, B: 6})


def test_a_run_of_one_batch_while_a_broker_is_away_keeps_the_offsets_of_its_queues_and_logs_them(caplog):
    away = MessageQueue("T", "b", 0)
    brokers = ScriptedBrokers({A: (0, 10), away: (0, 8)}, names={"a", "b"})
    before = planner_on(brokers).latest_offset()
    brokers.queues, brokers.names = {A: (0, 20)}, {"a"}
    first = restarted_on(brokers, before)
    during = first.latest_offset()
    assert first.ranges(before, during) == ({A: 10, away: 8}, {A: 20, away: 8})
    assert caplog.messages == ["queue_awaited queue='T/b/0' next_offset=8"]
    brokers.queues, brokers.names = {A: (0, 20), away: (0, 9)}, {"a", "b"}
    second = restarted_on(brokers, during)

    assert second.ranges(during, second.latest_offset()) == ({A: 20, away: 8}, {A: 20, away: 9})


def test_without_new_messages_the_end_stays_the_same_text_and_brokers_are_asked_by_the_poll_interval(clock):
    brokers = ScriptedBrokers({A: (0, 5)})
    planner = planner_on(brokers, clock)
    texts = {str(planner.latest_offset().to_json())}
    began = clock.monotonic()
    texts |= {str(planner.latest_offset().to_json()) for _ in range(50)}

    assert len(texts) == 1
    assert (brokers.asked, clock.monotonic() - began) == (51, 50)


def test_the_start_of_a_query_costs_no_wait(clock):
    brokers, began = ScriptedBrokers({A: (0, 5)}), clock.monotonic()
    planner = planner_on(brokers, clock)
    planner.initial_offset()
    planner.latest_offset()
    planner.initial_offset()

    assert (brokers.asked, clock.monotonic()) == (1, began)


def test_nothing_past_the_ending_offsets_is_planned_and_a_query_past_them_is_refused():
    planner = planner_on(ScriptedBrokers({A: (0, 9)}, ends=Ends({A: 4}, is_final=True)))
    end = planner.latest_offset()

    assert planner.ranges(StreamOffsets({A: 1}), end) == ({A: 1}, {A: 4})
    with pytest.raises(ConfigError, match="has read T/a/0 up to 7, past its ending offset 4"):
        planner.ranges(StreamOffsets({A: 7}), end)


@pytest.mark.parametrize(
    ("queues", "start", "says", "ranges"),
    [
        pytest.param({A: (6, 9)}, {A: 5}, "have expired", ({A: 5}, {A: 9}), id="expired"),
        pytest.param({A: (0, 3)}, {A: 5}, "ends at 3, before offset 5", ({A: 3}, {A: 3}), id="shorter"),
        pytest.param({A: (0, 9)}, {A: 5, B: 2}, "T/a/1 is gone", ({A: 5}, {A: 9}), id="gone"),
    ],
)
def test_lost_offsets_are_an_error_or_skipped(queues, start, says, ranges):
    start = StreamOffsets(start)
    strict, lenient = (
        planner_on(ScriptedBrokers(dict(queues)), fail_on_data_loss=fail) for fail in (True, False)
    )

    with pytest.raises(DataLossError, match=says):
        strict.ranges(start, strict.latest_offset())
    assert lenient.ranges(start, lenient.latest_offset()) == ranges


def test_a_queue_whose_broker_is_down_is_awaited_for_a_minute_and_then_lost_in_the_next_batch(clock):
    other = MessageQueue("T", "b", 0)
    brokers = ScriptedBrokers({A: (0, 5), other: (0, 3)}, names={"a", "b"})
    planner = planner_on(brokers, clock)
    planner.ranges(planner.initial_offset(), end := planner.latest_offset())
    brokers.queues, brokers.names = {A: (0, 6)}, {"a"}
    clock.advance(1)
    planner.ranges(end, soon := planner.latest_offset())
    brokers.queues = {A: (0, 7)}
    clock.advance(60)

    with pytest.raises(DataLossError, match="T/b/0 is gone"):
        planner.ranges(soon, planner.latest_offset())


def test_options_that_no_longer_fit_concern_only_a_new_query():
    class Unresolved(ScriptedBrokers):
        def resolve_start(self, stored):
            raise ConfigError("option 'startingOffsets': offset 1 is not stored")

    planner = planner_on(Unresolved({A: (3, 9)}))

    assert planner.ranges(StreamOffsets({A: 5}), planner.latest_offset()) == ({A: 5}, {A: 9})
    with pytest.raises(ConfigError, match="offset 1 is not stored"):
        planner.initial_offset()


def test_silent_brokers_are_waited_for_once_they_have_answered(clock):
    brokers = ScriptedBrokers({A: (0, 5)}, is_silent=True)
    planner = planner_on(brokers, clock, patience=60)
    with pytest.raises(RemotingTimeoutError):
        planner.latest_offset()
    brokers.is_silent = False
    end = planner.latest_offset()
    brokers.is_silent = True
    clock.advance(1)
    assert planner.latest_offset() == end
    clock.advance(61)

    with pytest.raises(RemotingTimeoutError):
        planner.latest_offset()
