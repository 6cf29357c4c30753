"""The steps after a failure; the delay of a popped message, with Java's table as the oracle."""

import pytest

from rmqtools.errors import ConfigError
from rmqtools.model.consume import ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.policy.redelivery import (
    OrderlyStep,
    exhausted_delay,
    listener_batches,
    listener_count,
    max_reconsume_times,
    orderly_step,
    original_topic,
    pop_delay,
    split_exhausted,
    suspend_seconds,
    tried_again,
)
from rmqtools.protocol.messages.corrupt_message import corrupt_message
from rmqtools.testing import stored_message

SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


def stored(topic: str = "T", *, times: int = 0, **properties: str) -> MessageExt:
    return stored_message(
        topic, 9, body=b"x", properties=properties, flag=3, reconsume_times=times, offset_msg_id="OFFSET-ID"
    )


@pytest.mark.parametrize(
    ("configured", "orderly", "times"), [(-1, False, 16), (-1, True, 2**31 - 1), (0, False, 0), (3, True, 3)]
)
def test_minus_one_is_the_default_number_of_tries(configured, orderly, times):
    assert max_reconsume_times(configured, orderly=orderly) == times


def test_fewer_tries_than_none_are_refused():
    with pytest.raises(ConfigError, match="max_reconsume_times=-2"):
        max_reconsume_times(-2)


@pytest.mark.parametrize(
    ("status", "auto_commit", "step"),
    [
        (ConsumeOrderlyStatus.SUCCESS, True, OrderlyStep.COMMIT),
        (ConsumeOrderlyStatus.COMMIT, True, OrderlyStep.COMMIT),
        (ConsumeOrderlyStatus.ROLLBACK, True, OrderlyStep.COMMIT),
        (SUSPEND, True, OrderlyStep.RETRY),
        (None, True, OrderlyStep.RETRY),
        (ConsumeOrderlyStatus.SUCCESS, False, OrderlyStep.HOLD),
        (ConsumeOrderlyStatus.COMMIT, False, OrderlyStep.COMMIT),
        (ConsumeOrderlyStatus.ROLLBACK, False, OrderlyStep.ROLLBACK),
        (SUSPEND, False, OrderlyStep.RETRY),
        (None, False, OrderlyStep.RETRY),
    ],
)
def test_what_follows_from_an_answer_in_order(status, auto_commit, step):
    assert orderly_step(status, auto_commit=auto_commit) is step


def test_messages_tried_too_often_leave_the_queue_and_the_others_count_a_try():
    fresh, last, worn = stored(times=0), stored(times=1), stored(times=2)

    assert split_exhausted([fresh, last, worn], 2) == ((tried_again(fresh), tried_again(last)), (worn,))
    assert [message.reconsume_times for message in (tried_again(fresh), tried_again(worn))] == [1, 3]


@pytest.mark.parametrize(
    ("wanted", "seconds"), [(None, 1.0), (2.5, 2.5), (0.0, 0.010), (-1.0, 0.010), (99.0, 30.0)]
)
def test_a_queue_waits_between_10_ms_and_30_s(wanted, seconds):
    assert suspend_seconds(wanted, 1.0) == seconds


@pytest.mark.parametrize(
    ("message", "topic"),
    [
        (stored("T", RETRY_TOPIC="other"), "T"),
        (stored("%RETRY%g", RETRY_TOPIC="T"), "T"),
        (stored("%RETRY%g"), "%RETRY%g"),
        (stored("%RETRY%other", RETRY_TOPIC="T"), "%RETRY%other"),
    ],
)
def test_a_listener_sees_the_topic_a_message_was_sent_to(message, topic):
    assert original_topic(message, "g") == topic


DELAYS = [10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200]


@pytest.mark.parametrize(("times", "expected"), [*enumerate(DELAYS), (16, 7200), (100, 7200)])
def test_every_try_waits_longer_until_two_hours(times, expected):
    assert pop_delay(times) == expected


@pytest.mark.parametrize(("level", "expected"), [(1, 30), (2, 60), (15, 7200), (18, 7200)])
def test_a_level_that_the_listener_sets_counts_instead_of_the_tries(level, expected):
    assert pop_delay(3, level) == expected


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (0, 10),
        (9.9, 10),
        (10, 30),
        (29, 30),
        (30, 60),
        (3599, 3600),
        (3600, 7200),
        (7200, 7200),
        (14400, 7200),
        pytest.param(14400.1, None, id="twice-as-old-as-the-longest-delay-it-is-given-up"),
    ],
)
def test_a_message_tried_too_often_waits_for_the_next_delay_above_its_age(age, expected):
    assert exhausted_delay(age) == expected


# Messages whose body cannot be read


def messages(kinds: str) -> list[MessageExt]:
    """One for each letter: g for a good message, c for a corrupt one."""
    found = [stored().with_values(queue_offset=offset) for offset, _ in enumerate(kinds)]
    return [
        corrupt_message(message, "torn") if kind == "c" else message
        for kind, message in zip(kinds, found, strict=True)
    ]


@pytest.mark.parametrize(
    ("kinds", "size", "batches"),
    [
        ("ggggg", 2, [[0, 1], [2, 3], [4]]),
        ("ggcgg", 4, [[0, 1], [2], [3, 4]]),
        ("cg", 9, [[0], [1]]),
        ("gccg", 9, [[0], [1], [2], [3]]),
        ("gcg", 1, [[0], [1], [2]]),
        ("", 3, []),
    ],
)
def test_a_listener_gets_a_corrupt_message_alone(kinds, size, batches):
    found = listener_batches(messages(kinds), size)

    assert [[message.queue_offset for message in batch] for batch in found] == batches


def test_a_queue_in_order_hands_out_as_many_as_stand_in_front_of_a_corrupt_message():
    assert [listener_count(messages(kinds)) for kinds in ("ggg", "gcg", "cgg", "")] == [3, 1, 1, 0]


def test_in_order_a_corrupt_message_is_tried_too_often_at_once():
    again, exhausted = split_exhausted(messages("gcg"), 2**31 - 1)

    assert [(message.queue_offset, message.reconsume_times) for message in again] == [(0, 1), (2, 1)]
    assert [message.queue_offset for message in exhausted] == [1]


def test_one_more_try_is_counted_of_a_corrupt_message_too():
    (broken,) = messages("c")

    assert tried_again(broken).reconsume_times == broken.reconsume_times + 1
    assert tried_again(broken).body_error is not None
