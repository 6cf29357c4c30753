"""Lost offsets are named, with the option that lets a read go on, by one table for all reads."""

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError, DataLossError, TopicNotFoundError
from spark_connector.read.loss import (
    GoneQueues,
    Loss,
    QueueMark,
    find_losses,
    find_made_anew,
    report_losses,
    report_missing_queues,
    report_missing_topics,
)
from spark_connector.read.stored import Stored

A, B = MessageQueue("T", "a", 0), MessageQueue("T", "b", 1)


@pytest.mark.parametrize(
    ("next_offset", "stored", "says", "go_on_at"),
    [
        pytest.param(3, (5, 9), r"offsets \[3, 5\) of T/a/0 have expired", 5, id="expired"),
        pytest.param(12, (5, 9), "T/a/0 ends at 9, before offset 12 that is next", 9, id="shrunk"),
        pytest.param(12, None, r"T/a/0 is gone .*: offsets from 12 on cannot be read", None, id="gone"),
    ],
)
def test_a_loss_says_which_offsets_and_where_reading_can_go_on(next_offset, stored, says, go_on_at):
    earliest, latest = ({A: stored[0]}, {A: stored[1]}) if stored else ({}, {})

    (loss,) = find_losses({A: next_offset}, Stored(earliest, latest))

    assert (loss.queue, loss.go_on_at) == (A, go_on_at)
    with pytest.raises(DataLossError, match=says + ".*'failOnDataLoss' to false"):
        report_losses([loss], fail=True)


def test_all_losses_are_told_at_once():
    losses = find_losses({B: 7, A: 1}, Stored({A: 2}, {A: 2}))

    assert [loss.queue for loss in losses] == [A, B]
    with pytest.raises(DataLossError, match=r"T/a/0.*; T/b/1"):
        report_losses(losses, fail=True)


def test_losses_that_are_passed_over_are_logged_each(caplog):
    report_losses([Loss(A, "this"), Loss(B, "that")], fail=False)

    assert [message.split()[0] for message in caplog.messages] == ["data_lost", "data_lost"]


def test_losses_over_offsets_of_an_option_name_the_option():
    with pytest.raises(ConfigError, match="option 'startingOffsets': this: set option 'failOnDataLoss'"):
        report_losses([Loss(A, "this")], fail=True, option="startingOffsets")


@pytest.mark.parametrize(
    ("gone", "next_offset", "filled", "is_loss"),
    [
        pytest.param(MessageQueue("T", "a", 7), 0, (), False, id="never-filled-and-its-broker-has-others"),
        pytest.param(MessageQueue("T", "a", 7), 0, (7,), True, id="seen-with-messages"),
        pytest.param(MessageQueue("T", "a", 7), 3, (), True, id="read-from"),
        pytest.param(MessageQueue("T", "c", 7), 0, (), True, id="its-broker-is-gone"),
        pytest.param(MessageQueue("U", "a", 7), 0, (), True, id="its-topic-is-gone"),
    ],
)
def test_a_queue_count_that_shrinks_is_no_loss_of_queues_that_were_never_filled(
    gone, next_offset, filled, is_loss
):
    seen = [gone] if filled else []

    losses = find_losses({A: 3, gone: next_offset}, Stored({A: 0}, {A: 3}), filled=seen)

    assert bool(losses) is is_loss


def test_another_message_at_a_marked_offset_tells_that_the_topic_was_made_anew():
    marks = {A: QueueMark(4, 1000), B: QueueMark(7, 1000)}

    assert find_made_anew(marks, {A: 1000, B: 1000}) == {}
    assert find_made_anew(marks, {A: 1001, B: 1000}) == {A: QueueMark(4, 1000)}
    assert find_made_anew(marks, {}) == {}  # expired: it cannot be told


def test_a_missing_topic_among_several_is_an_error_or_passed_over(caplog):
    with pytest.raises(TopicNotFoundError, match=r"topic 'gone' has no route.*'failOnDataLoss' to false"):
        report_missing_topics(["gone"], ["there"], fail=True, fetch_known=list)

    report_missing_topics(["gone"], ["there"], fail=False, fetch_known=list)
    assert "topic 'gone' has no route" in caplog.text


def test_topics_that_are_all_missing_are_an_error_whatever_the_option():
    with pytest.raises(TopicNotFoundError, match=r"correct the name$"):
        report_missing_topics(["gone"], [], fail=False, fetch_known=list)


def test_missing_topics_are_told_with_those_of_similar_names():
    with pytest.raises(
        TopicNotFoundError,
        match=r"topic 'adit', topic 'ordres' has no route: .* \(did you mean 'audit', 'orders'\?\); correct",
    ):
        report_missing_topics(["ordres", "adit"], [], fail=True, fetch_known=lambda: ["audit", "orders"])


def test_a_missing_assigned_queue_is_an_error_or_passed_over():
    assert report_missing_queues([A, B], [B], fail=False) == [B]
    with pytest.raises(ConfigError, match="option 'assign': T/a/0 does not exist"):
        report_missing_queues([A, B], [B], fail=True)
    with pytest.raises(ConfigError, match="option 'assign'"):
        report_missing_queues([A], [B], fail=False)


def test_other_losses_are_certain_at_once_and_brokers_are_not_asked():
    loss = Loss(A, "expired", go_on_at=5)

    assert GoneQueues().certain([loss], NotImplemented, now=0) == [loss]
