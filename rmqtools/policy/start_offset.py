"""Where a member begins to read a queue that it newly owns.

    committed >= 0                    there
    none, and consume_from_where is   topic           retry topic
        CONSUME_FROM_LAST_OFFSET      ask the end     0
        CONSUME_FROM_FIRST_OFFSET     0               0
        CONSUME_FROM_TIMESTAMP        ask the time    ask the end

"Ask" is for the caller: :class:`StartAt` says what. 0 need not exist: the broker then answers
PULL_OFFSET_MOVED and where to go on. A queue whose start cannot be found is left out of this round of the
rebalance and tried again in the next.
Source of the rules: computePullFromWhereWithException of RebalancePushImpl and RebalanceLitePullImpl,
DefaultLitePullConsumer.setConsumeFromWhere, UtilAll.parseDate (Java client).
"""

from datetime import UTC, datetime, tzinfo
from enum import Enum

from rmqtools.errors import ConfigError, ProtocolError
from rmqtools.model.group import ConsumeFromWhere
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX

DEPRECATED_CONSUME_FROM = (
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
)
_TIMESTAMP_FORMAT = "%Y%m%d%H%M%S"
_TIMESTAMP_LENGTH = 14


class ReadOffsetType(Enum):
    """Where a committed offset is looked up: what this client noted, or what the group's store holds."""

    READ_FROM_MEMORY = "READ_FROM_MEMORY"
    READ_FROM_STORE = "READ_FROM_STORE"
    MEMORY_FIRST_THEN_STORE = "MEMORY_FIRST_THEN_STORE"


PUSH_READS = ReadOffsetType.READ_FROM_STORE
LITE_PULL_READS = ReadOffsetType.MEMORY_FIRST_THEN_STORE


class StartAt(Enum):
    """What the broker must be asked to know where a queue begins."""

    MAX_OFFSET = "MAX_OFFSET"
    SEARCH_TIMESTAMP = "SEARCH_TIMESTAMP"  # the first message stored at consume_timestamp_ms or later


_START: dict[ConsumeFromWhere, int | StartAt] = {
    ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET: StartAt.MAX_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET: 0,
    ConsumeFromWhere.CONSUME_FROM_TIMESTAMP: StartAt.SEARCH_TIMESTAMP,
}
_START_OF_RETRY: dict[ConsumeFromWhere, int | StartAt] = {
    ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET: 0,
    ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET: 0,
    ConsumeFromWhere.CONSUME_FROM_TIMESTAMP: StartAt.MAX_OFFSET,
}


def start_offset(committed: int | None, consume_from: ConsumeFromWhere, topic: str) -> int | StartAt:
    """Where a queue begins, or what to ask; pass the broker's answer through :func:`checked_offset`.

    Args:
        committed: the group's offset; None where it has none. A failed look-up is an error, never None: it
            would send a group that has an offset to another place.
        consume_from: what the group does without an offset.
        topic: the queue's topic.

    Raises:
        ProtocolError: a negative offset.
    """
    if committed is not None:
        return checked_offset(committed)
    is_retry = topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
    return (_START_OF_RETRY if is_retry else _START)[consume_from]


def checked_offset(offset: int) -> int:
    """The offset a broker answered.

    Raises:
        ProtocolError: it is negative; nothing can be read from there.
    """
    if offset < 0:
        raise ProtocolError(f"a queue cannot begin at offset {offset}: want 0 or more")
    return offset


def consume_from_where(name: str, *, accept_deprecated: bool = True) -> ConsumeFromWhere:
    """The rule of this name. Push consumers take three deprecated names, which mean the last offset.

    Raises:
        ConfigError: no such name, or a deprecated one where none is accepted (lite pull).
    """
    if accept_deprecated and name in DEPRECATED_CONSUME_FROM:
        return ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    if name not in ConsumeFromWhere.__members__:
        known = ", ".join(ConsumeFromWhere.__members__)
        raise ConfigError(f"consume_from_where={name!r}: want one of {known}")
    return ConsumeFromWhere(name)


def parse_consume_timestamp(text: str, zone: tzinfo | None = None) -> int:
    """``yyyyMMddHHmmss`` as milliseconds since 1970, in ``zone`` (None: this machine's).

    A time that the clocks skip is read as if they had not been put forward, one they show twice is the
    second: both are Java's.

    Raises:
        ConfigError: not 14 digits, or no such day or time. Java rolls the 32nd of a month over instead, and
            starts nowhere (a NullPointerException) with other text.
    """
    local = _parse_time(text)
    instants = [_instant(local.replace(fold=fold), zone) for fold in (0, 1)]
    return int(max(instants).timestamp()) * 1000


def _parse_time(text: str) -> datetime:
    try:
        if len(text) != _TIMESTAMP_LENGTH or not (text.isascii() and text.isdigit()):
            raise ValueError(text)
        return datetime.strptime(text, _TIMESTAMP_FORMAT)  # the zone is added by the caller
    except ValueError as error:
        raise ConfigError(f"consume_timestamp={text!r}: want yyyyMMddHHmmss, e.g. 20231114221320") from error


def _instant(local: datetime, zone: tzinfo | None) -> datetime:
    return (local if zone is None else local.replace(tzinfo=zone)).astimezone(UTC)
