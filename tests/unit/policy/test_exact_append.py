"""Decisions of exact appenders, without any I/O."""

from functools import partial

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import ExactAppendError
from rmqtools.model.append_mark import AppendMark, parse_mark
from rmqtools.policy.exact_append import (
    Answered,
    AnsweringPeriod,
    LockAge,
    check_last,
    check_nothing_found,
    check_origin,
    check_place,
    check_positions,
    count_stored,
    meaning_of,
)

QUEUE = MessageQueue("t", "b", 0)


@pytest.mark.parametrize(
    ("code", "remark", "meaning"),
    [
        (0, None, Answered.STORED),
        (10, None, Answered.STORED),  # flush timeout
        (11, None, Answered.STORED),  # no slave
        (12, None, Answered.STORED),  # slave timeout: the master keeps the message
        (2, None, Answered.TRY_AGAIN),
        (14, None, Answered.TRY_AGAIN),
        (13, None, Answered.REFUSED),
        (17, None, Answered.REFUSED),
        (1, None, Answered.UNKNOWN),  # an internal error: its remark says whether something may be stored
        (1, "[PC_SYNCHRONIZED]broker busy, start flow control for a while", Answered.TRY_AGAIN),
        (1, "java.lang.RuntimeException: message body size exceeded", Answered.REFUSED),
        (1, "java.lang.NullPointerException", Answered.UNKNOWN),
    ],
)
def test_an_answer_says_stored_not_stored_or_perhaps(code, remark, meaning):
    assert meaning_of(code, remark) is meaning


def test_a_lock_is_good_for_half_of_its_life():
    age = LockAge(60.0)
    assert not age.may_send(0.0)
    age.renewed(100.0)

    assert [age.may_send(now) for now in (100.0, 129.9, 130.0, 190.0)] == [True, True, False, False]
    age.lost()
    assert not age.may_send(100.0)


def period_over(answers: list[tuple[float, float]], *, seconds: float = 10.0) -> bool:
    """Return whether a period is over after answers, given by when they were asked for and came."""
    period = AnsweringPeriod(seconds)
    for asked_at, now in answers:
        period.answered(asked_at, now)
    return period.is_over(answers[-1][1])


def test_a_period_of_answers_is_over_after_its_seconds_from_the_first_answer():
    steady = [(at / 2, at / 2 + 0.01) for at in range(22)]

    assert not period_over(steady[:20])
    assert period_over(steady)


def test_a_period_begins_again_after_a_slow_answer_a_missing_one_and_a_pause_of_this_process():
    steady = [(at / 2, at / 2 + 0.01) for at in range(19)]

    assert not period_over([*steady, (9.5, 13.0)])
    assert not period_over([*steady, (15.0, 15.01)])
    period = AnsweringPeriod(10.0)
    for asked_at, now in steady:
        period.answered(asked_at, now)
    period.missed()
    period.answered(10.5, 10.51)
    assert not period.is_over(10.51)


def test_nothing_found_means_new_only_where_nothing_has_expired_or_the_caller_says_so():
    check_nothing_found(QUEUE, "w", "", min_offset=0, last=None, is_new=False, others={})
    check_nothing_found(QUEUE, "w", "", min_offset=7, last=None, is_new=True, others={})
    for last, is_new in ((None, False), (3, True), (9, True)):
        with pytest.raises(ExactAppendError):
            check_nothing_found(QUEUE, "w", "", min_offset=7, last=last, is_new=is_new, others={})


def test_the_same_source_under_another_name_of_the_writer_is_refused_unless_it_is_meant():
    others = {"old/orders/b/0": "old"}
    found = partial(check_nothing_found, QUEUE, "w", min_offset=0, last=None, others=others)

    found("new/orders/b/1", is_new=False)
    found("new/orders/b/0", is_new=True)
    with pytest.raises(ExactAppendError, match="messages of writer 'old' from 'old/orders/b/0'"):
        found("new/orders/b/0", is_new=False)


def test_the_last_message_must_be_where_it_was_stored_unless_it_has_expired():
    check_last(QUEUE, "w", last=None, min_offset=0, first=None)
    mark = AppendMark(9, "w")
    check_last(QUEUE, "w", last=4, min_offset=0, first=(4, mark))
    check_last(QUEUE, "w", last=4, min_offset=0, first=(4, mark), position=9)
    check_last(QUEUE, "w", last=4, min_offset=5, first=(7, mark))
    for first, position in ((None, None), ((6, mark), None), ((6, mark), 9), ((4, mark), 8)):
        with pytest.raises(ExactAppendError, match="is not the one that writer 'w' has stored"):
            check_last(QUEUE, "w", last=4, min_offset=0, first=first, position=position)


def test_a_mark_with_a_time_has_another_origin_for_a_mirror_that_does_not_know_times():
    text = str(AppendMark(3, "w", "east/orders/b/0", 7))

    assert text.partition(" ")[2].partition(" ")[2] != "east/orders/b/0"


@pytest.mark.parametrize(("found", "stored"), [(4, 0), (7, 1), (8, 2), (12, 3)])
def test_the_last_position_says_how_many_of_a_batch_are_stored(found, stored):
    assert count_stored(QUEUE, [7, 8, 12], before=4, found=found) == stored


@pytest.mark.parametrize("found", [None, 3, 9, 13])
def test_a_position_that_this_writer_has_not_written_stops_it(found):
    with pytest.raises(ExactAppendError, match="another writer has this name"):
        count_stored(QUEUE, [7, 8, 12], before=4, found=found)


def test_an_earlier_place_than_expected_is_a_lost_end():
    check_place(QUEUE, expected=5, got=5)
    check_place(QUEUE, expected=5, got=9)
    with pytest.raises(ExactAppendError, match="lost the end"):
        check_place(QUEUE, expected=5, got=4)


def test_positions_of_two_origins_are_not_compared():
    check_origin(QUEUE, AppendMark(1, "w", "a"), "a")
    with pytest.raises(ExactAppendError, match="two origins"):
        check_origin(QUEUE, AppendMark(1, "w", "a"), "b")


def test_a_cluster_may_get_another_name_if_the_mark_says_which_message_it_is():
    check_origin(QUEUE, AppendMark(1, "w", "old/orders/b/0", 5), "new/orders/b/0")
    for mark, origin in (
        ((1, "w", "old/orders/b/0", 5), "new/orders/b/1"),
        ((1, "w", "old/o/b/0"), "new/o/b/0"),
    ):
        with pytest.raises(ExactAppendError, match="two origins"):
            check_origin(QUEUE, AppendMark(*mark), origin)


def test_positions_rise_from_the_last_one_on():
    check_positions([3, 9], count=2, next_position=3)
    check_positions([0], count=1, next_position=None)
    for positions, following in (([3, 3], None), ([2], 3), ([-1], None)):
        with pytest.raises(ValueError, match="only rise"):
            check_positions(positions, count=len(positions), next_position=following)


@pytest.mark.parametrize(
    "mark",
    [
        AppendMark(0, "w"),
        AppendMark(17, "w", "east/orders/broker a/3"),
        AppendMark(2**62, "w-1", ""),
        AppendMark(3, "w", "east/orders/b/0", 1_700_000_000_000),
        AppendMark(3, "w", "", 0),
    ],
)
def test_a_mark_is_read_as_it_was_written(mark):
    assert parse_mark(str(mark)) == mark


@pytest.mark.parametrize("text", [None, "", "x w", "-1 w", "1", "1 ", f"{10**19} w", "٣ w"])
def test_what_is_no_mark_is_none(text):
    assert parse_mark(text) is None
