"""Decides where a member starts to read a new queue.

    committed >= 0                    there
    none or negative, and
    consume_from_where is             topic           retry topic
        CONSUME_FROM_LAST_OFFSET      ask the end     0
        CONSUME_FROM_FIRST_OFFSET     0               0
        CONSUME_FROM_TIMESTAMP        ask the time    ask the end

Java clients store -1 for "none", in the file of a broadcasting group too; no negative offset is ever a start.
The caller asks the broker, as :class:`StartAt` states. Offset 0 may not be stored: the broker then answers
PULL_OFFSET_MOVED with the offset to continue at. A queue whose start is unknown is left out of this rebalance
round and tried again in the next.
Source of the rules: computePullFromWhereWithException of RebalancePushImpl and RebalanceLitePullImpl (Java
client).
"""

from enum import Enum

from rmqtools.errors import ProtocolError
from rmqtools.model.group import ConsumeFromWhere
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX


class StartAt(Enum):
    """The question to the broker that gives a queue's start."""

    MAX_OFFSET = "MAX_OFFSET"
    SEARCH_TIMESTAMP = "SEARCH_TIMESTAMP"  # the first message stored at consume_timestamp_ms or later


_START: dict[str, int | StartAt] = {
    ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET: StartAt.MAX_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET: 0,
    ConsumeFromWhere.CONSUME_FROM_TIMESTAMP: StartAt.SEARCH_TIMESTAMP,
}
_START_OF_RETRY: dict[str, int | StartAt] = {
    ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET: 0,
    ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET: 0,
    ConsumeFromWhere.CONSUME_FROM_TIMESTAMP: StartAt.MAX_OFFSET,
}


def known_offset(stored: int | None) -> int | None:
    """Return a group's stored offset; None if there is none. A negative one is none."""
    return None if stored is None or stored < 0 else stored


def start_offset(committed: int | None, consume_from: ConsumeFromWhere | str, topic: str) -> int | StartAt:
    """Return a queue's start, or what to ask; pass the broker's answer through :func:`checked_offset`.

    Args:
        committed: the group's offset; None or negative if it has none. A failed look-up must raise and never
            give None: the group would lose its place.
        consume_from: the rule for a group without an offset.
        topic: the queue's topic.
    """
    if (known := known_offset(committed)) is not None:
        return known
    is_retry = topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
    return (_START_OF_RETRY if is_retry else _START)[consume_from]


def checked_offset(offset: int) -> int:
    """Return the offset that a broker answered.

    Raises:
        ProtocolError: it is negative.
    """
    if offset < 0:
        raise ProtocolError(f"a queue cannot begin at offset {offset}: want 0 or more")
    return offset
