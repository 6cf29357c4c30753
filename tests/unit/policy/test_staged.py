"""Records of staged commits, ranges, and what is left to copy."""

from typing import Any

import pytest

from rmqtools import MessageQueue, QueueRange
from rmqtools.errors import ConfigError, ExactAppendError, MessageRejectedError
from rmqtools.model.append_mark import AppendMark
from rmqtools.model.decision import DECISION_TOKEN
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_KEYS
from rmqtools.model.staged import StagedQueue
from rmqtools.policy.exact_append import check_alone, check_since
from rmqtools.policy.staged import (
    COPIED,
    DECIDED,
    GIVEN_UP,
    BatchDecision,
    Decisions,
    by_queue,
    check_retention,
    check_same,
    decode_decision,
    encode_decision,
    merge_ranges,
    queue_counts,
    rest_of,
    rows_up_to,
)
from rmqtools.testing import stored_message

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


def decision(batch: int, *bounds: tuple[int, int], **more: Any) -> BatchDecision:
    parts = [part(*bounds)] if bounds else []
    return BatchDecision(batch=batch, **{"after": None, "digest": None, "by": "me", "parts": parts, **more})


def said(found: BatchDecision, token: str, *, tags: str = DECIDED, writer: str = "w") -> MessageExt:
    return stored_message(
        "d",
        body=encode_decision(found, 1000),
        tags=tags,
        properties={DECISION_TOKEN: token, PROPERTY_KEYS: f"{writer}/{found.batch}"},
    )


def test_a_decision_says_the_same_when_it_is_read():
    for given in (decision(3, (0, 2), (4, 5), after=2, digest=2**127), decision(0)):
        assert decode_decision(encode_decision(given, 1000)) == given


def test_a_decision_that_no_message_can_hold_is_refused():
    with pytest.raises(MessageRejectedError, match=r"the record of 2 ranges has \d+ bytes, at most 50"):
        encode_decision(decision(3, (0, 2), (4, 5)), 50)


@pytest.mark.parametrize(
    "record", [b"", b"[]", b'{"version": 1, "queues": []}', b'{"version": 2, "queues": [{}]}']
)
def test_a_record_of_something_else_is_refused(record):
    with pytest.raises(ExactAppendError, match="is not one of staged writes"):
        decode_decision(record)


def test_the_first_decision_of_a_number_counts_and_none_that_comes_late():
    decisions = Decisions("w")
    seen = []
    for after, batch, token, writer in [
        (None, 5, "first", "w"),
        (None, 5, "second", "w"),
        (6, 7, "of another writer", "x"),
        (5, 6, "next", "w"),
        (4, 5, "late", "w"),
        (5, 6, "late, too", "w"),
        (6, 7, "after it", "w"),
        (None, 9, "of one who knew nothing", "w"),
    ]:
        decisions.note(said(decision(batch, after=after), token, writer=writer))
        seen.append(decisions.last and decisions.last.token)

    assert seen == ["first", "first", "first", "next", "next", "next", "after it", "after it"]


def test_only_the_last_decision_is_ended_and_once():
    decisions = Decisions("w")
    for batch in (5, 6):
        decisions.note(said(decision(batch, after=batch - 1), "t"))
    ends = []
    for batch, tags in [(5, COPIED), (6, GIVEN_UP), (6, COPIED)]:
        decisions.note(said(decision(batch), "t", tags=tags))
        ends.append(decisions.last and decisions.last.end)

    assert ends == ["", GIVEN_UP, GIVEN_UP]


@pytest.mark.parametrize(("count", "digest"), [(2, 7), (2, None)])
def test_a_commit_with_the_same_rows_is_the_same(count, digest):
    check_same(decision(5, (0, 2), digest=7), count, digest, last=5, writer="w", target="t")


@pytest.mark.parametrize(
    ("count", "digest", "last", "text"),
    [
        (3, 7, 5, "has 3 rows now, and 2 rows of it are stored in topic 't', decided on 1970-01-01T00:00:00"),
        (
            2,
            8,
            5,
            r"has 2 rows now, and 2 other rows .* by me\. Nothing was added\. .* onChangedRows=keepFirst",
        ),
        (2, 8, 6, "commits up to 6 are decided, so a checkpoint was restored, or another driver is running"),
    ],
)
def test_a_commit_with_other_rows_is_refused(count, digest, last, text):
    with pytest.raises(ExactAppendError, match=text):
        check_same(decision(5, (0, 2), digest=7), count, digest, last=last, writer="w", target="t")


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


def test_a_message_of_the_same_writer_in_between_is_refused():
    check_alone(TARGET, None, found=0)
    check_alone(TARGET, (5, AppendMark(3, "w")), found=2, sent=2)
    with pytest.raises(ExactAppendError, match="another process has stored position 3"):
        check_alone(TARGET, (5, AppendMark(3, "w")), found=1)


def test_a_queue_that_lost_what_came_after_an_offset_is_refused():
    check_since(TARGET, 5, min_offset=5, end=5)
    with pytest.raises(ExactAppendError, match="ends at offset 4, and ended at 5 before"):
        check_since(TARGET, 5, min_offset=0, end=4)
    with pytest.raises(ExactAppendError, match="begins at offset 6: messages from 5 on have expired"):
        check_since(TARGET, 5, min_offset=6, end=9)
