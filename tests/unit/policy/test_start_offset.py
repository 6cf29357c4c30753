import pytest

from rmqtools.errors import ProtocolError
from rmqtools.model.group import ConsumeFromWhere
from rmqtools.policy.start_offset import (
    checked_offset,
    known_offset,
    start_offset,
)


@pytest.mark.parametrize("offset", [-1, -2, -(2**63)])
@pytest.mark.parametrize("consume_from", ConsumeFromWhere)
@pytest.mark.parametrize("topic", ["T", "%RETRY%g"])
def test_a_negative_stored_offset_is_none(offset, consume_from, topic):
    assert start_offset(offset, consume_from, topic) == start_offset(None, consume_from, topic)
    assert known_offset(offset) is None


def test_a_negative_answer_is_no_start():
    with pytest.raises(ProtocolError):
        checked_offset(-1)


@pytest.mark.parametrize("consume_from", ConsumeFromWhere)
def test_a_stored_offset_of_0_is_the_start(consume_from):
    assert start_offset(0, consume_from, "T") == 0
    assert known_offset(0) == 0


def test_a_queue_begins_at_0_if_a_broker_says_so():
    assert checked_offset(0) == 0


@pytest.mark.parametrize(
    "consume_from", [ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET]
)
def test_a_new_group_reads_its_retry_queue_from_the_first_message(consume_from):
    assert start_offset(None, consume_from, "%RETRY%g") == 0
