import pytest

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


def test_a_queue_begins_at_0_if_a_broker_says_so():
    assert checked_offset(0) == 0
