import pytest

from rmqtools.errors import ProtocolError
from rmqtools.model.group import ConsumeFromWhere
from rmqtools.policy.start_offset import (
    StartAt,
    checked_offset,
    known_offset,
    start_offset,
)

LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
TIMESTAMP = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP


@pytest.mark.parametrize("consume_from", ConsumeFromWhere)
@pytest.mark.parametrize("topic", ["T", "%RETRY%g"])
def test_a_committed_offset_wins_over_everything(consume_from, topic):
    assert [start_offset(offset, consume_from, topic) for offset in (0, 5)] == [0, 5]


@pytest.mark.parametrize(
    ("consume_from", "topic", "start"),
    [
        (LAST, "T", StartAt.MAX_OFFSET),
        (LAST, "%RETRY%g", 0),
        (FIRST, "T", 0),
        (FIRST, "%RETRY%g", 0),
        (TIMESTAMP, "T", StartAt.SEARCH_TIMESTAMP),
        (TIMESTAMP, "%RETRY%g", StartAt.MAX_OFFSET),
        (LAST, "%DLQ%g", StartAt.MAX_OFFSET),
    ],
)
def test_a_group_without_offset_begins_where_it_was_told(consume_from, topic, start):
    assert start_offset(None, consume_from, topic) == start


@pytest.mark.parametrize("offset", [-1, -2, -(2**63)])
@pytest.mark.parametrize("consume_from", ConsumeFromWhere)
@pytest.mark.parametrize("topic", ["T", "%RETRY%g"])
def test_a_negative_stored_offset_is_none(offset, consume_from, topic):
    assert start_offset(offset, consume_from, topic) == start_offset(None, consume_from, topic)
    assert known_offset(offset) is None


def test_a_negative_answer_is_no_start():
    with pytest.raises(ProtocolError):
        checked_offset(-1)
