"""Records of staged commits, ranges, and what is left to copy."""

import pytest

from rmqtools import MessageQueue, QueueRange
from rmqtools.errors import ConfigError, ExactAppendError, MessageRejectedError
from rmqtools.model.append_mark import AppendMark
from rmqtools.model.staged import StagedQueue
from rmqtools.policy.exact_append import check_gap, check_since, last_mark
from rmqtools.policy.staged import (
    by_queue,
    check_retention,
    decode_record,
    encode_record,
    merge_ranges,
    queue_counts,
    rest_of,
    rows_up_to,
)

QUEUE, OTHER = MessageQueue("s", "a", 0), MessageQueue("s", "a", 1)
TARGET = MessageQueue("t", "a", 0)


def ranges(*bounds: tuple[int, int], queue: MessageQueue = QUEUE) -> list[QueueRange]:
    return [QueueRange(queue, begin, end) for begin, end in bounds]


def part(*bounds: tuple[int, int]) -> StagedQueue:
    return StagedQueue(ranges=ranges(*bounds), target=TARGET, since=7)


def test_ranges_that_touch_are_joined_whatever_their_order():
    given = [*ranges((4, 6), (0, 2), (2, 4), (8, 9), (9, 9)), *ranges((0, 1), queue=OTHER)]

    assert merge_ranges(given) == [*ranges((0, 6), (8, 9)), *ranges((0, 1), queue=OTHER)]


def test_a_row_in_two_ranges_is_a_defect():
    with pytest.raises(ValueError, match="overlap: a row belongs to one range"):
        merge_ranges(ranges((0, 3), (2, 4)))


def test_a_queue_is_copied_to_the_one_of_the_same_broker_and_number():
    assert by_queue(ranges((0, 2), (4, 5)), "t") == {TARGET: ranges((0, 2), (4, 5))}


def test_a_record_says_the_same_when_it_is_read():
    parts = [part((0, 2), (4, 5))]

    assert decode_record(encode_record(parts, 1000)) == parts
    assert decode_record(encode_record([], 1000)) == []


def test_a_record_that_no_message_can_hold_is_refused():
    with pytest.raises(MessageRejectedError, match=r"the record of 2 ranges has \d+ bytes, at most 50"):
        encode_record([part((0, 2), (4, 5))], 50)


@pytest.mark.parametrize("record", [b"", b"[]", b'{"version": 2}', b'{"version": 1, "queues": [{}]}'])
def test_a_record_of_something_else_is_refused(record):
    with pytest.raises(ExactAppendError, match="is not one of staged writes"):
        decode_record(record)


@pytest.mark.parametrize(
    ("last", "rest", "rows"),
    [
        (None, [(2, 4), (6, 8)], 0),
        (2, [(3, 4), (6, 8)], 1),
        (3, [(6, 8)], 2),
        (6, [(7, 8)], 3),
        (7, [], 4),
    ],
)
def test_what_is_left_begins_behind_the_last_copied_row(last, rest, rows):
    assert rest_of(part((2, 4), (6, 8)), last) == rest
    assert rows_up_to(part((2, 4), (6, 8)), last) == rows


def test_each_broker_needs_as_many_queues_as_the_highest_number_says():
    queues = [MessageQueue("t", "b", 3), MessageQueue("t", "a", 0), MessageQueue("t", "b", 0)]

    assert queue_counts(queues) == {"a": 1, "b": 4}


def test_a_retention_that_cannot_be_read_is_not_refused():
    check_retention("a", None, 1e9)
    check_retention("a", "72", 72 * 3600)
    with pytest.raises(ConfigError, match="fileReservedTime=71 hours: less than the longest outage of 72"):
        check_retention("a", "71", 72 * 3600)


def test_marks_of_earlier_work_do_not_count():
    marks = [(5, AppendMark(3, "w")), (6, AppendMark(9, "other")), (7, None)]

    assert last_mark(marks, "w", lowest=4) is None
    assert last_mark(marks, "w", lowest=3) == marks[0]
    check_gap(TARGET, marks, "w", lowest=4)
    with pytest.raises(ExactAppendError, match="another process has stored position 3"):
        check_gap(TARGET, marks, "w", lowest=3)


def test_a_queue_that_lost_what_came_after_an_offset_is_refused():
    check_since(TARGET, 5, min_offset=5, end=5)
    with pytest.raises(ExactAppendError, match="ends at offset 4, and ended at 5 before"):
        check_since(TARGET, 5, min_offset=0, end=4)
    with pytest.raises(ExactAppendError, match="begins at offset 6: messages from 5 on have expired"):
        check_since(TARGET, 5, min_offset=6, end=9)
