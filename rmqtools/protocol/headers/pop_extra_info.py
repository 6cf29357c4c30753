"""The texts of popping (5.x): a popped message's broker, queue and check point.

Every popped message has one in POP_CK; clients send it back to acknowledge the message or to hide it longer:

    start_offset pop_time invisible_time revive_qid topic_type broker_name queue_id [queue_offset]

The header of a pop's answer has three, each of ``topic_type word value`` joined by ``;``:

    start_offset_info   word: queue id                             value: offset of the check point
    msg_offset_info     word: queue id                             value: offsets of the messages, by ","
    order_count_info    word: queue id, or "qo" id "%" offset      value: how often it was popped before

Source of the rules: ExtraInfoUtil, MQClientAPIImpl.changeInvisibleTimeAsync (Java client).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from rmqtools.errors import ProtocolError
from rmqtools.model.frozen import maker_of
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX, pop_retry_topic
from rmqtools.protocol.headers.codec import parse_int, parse_ints

NORMAL_TOPIC, RETRY_TOPIC, RETRY_TOPIC_V2 = "0", "1", "2"
_V2_MARK = "+"
_LEAST_PARTS, _ALL_PARTS = 7, 8

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class PopExtraInfo:
    """The parts of POP_CK. Times are milliseconds; ``queue_offset`` is None if the text has no such part."""

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_qid: int
    topic_type: str
    broker_name: str
    queue_id: int
    queue_offset: int | None = None

    def real_topic(self, topic: str, group: str) -> str:
        """Return the topic that stores the message: this topic, or the group's retry topic of it."""
        return real_topic(self.topic_type, topic, group)


_extra_info = maker_of(PopExtraInfo)


def topic_type(topic: str) -> str:
    """Return the mark of a topic in these texts: a retry topic of version 2 has a ``+``."""
    if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
        return NORMAL_TOPIC
    return RETRY_TOPIC_V2 if _V2_MARK in topic else RETRY_TOPIC


def real_topic(topic_type: str, topic: str, group: str) -> str:
    """Return the topic that stores popped messages of a topic: it, or the group's retry topic of it."""
    if topic_type == RETRY_TOPIC:
        return pop_retry_topic(topic, group)
    if topic_type == RETRY_TOPIC_V2:
        return f"{RETRY_GROUP_TOPIC_PREFIX}{group}{_V2_MARK}{topic}"
    return topic


def format_extra_info(info: PopExtraInfo) -> str:
    """Return the text of POP_CK."""
    parts = (
        info.start_offset,
        info.pop_time,
        info.invisible_time,
        info.revive_qid,
        info.topic_type,
        info.broker_name,
        info.queue_id,
        *(() if info.queue_offset is None else (info.queue_offset,)),
    )
    return " ".join(map(str, parts))


def parse_extra_info(text: str) -> PopExtraInfo:
    """Parse a POP_CK; parts after the eighth are ignored.

    Raises:
        ProtocolError: too few parts, or a part is not a number.
    """
    parts = text.split(" ")
    if len(parts) < _LEAST_PARTS:
        raise ProtocolError(f"extra info {text!r:.200} has {len(parts)} parts: want {_LEAST_PARTS} or more")
    try:
        return _extra_info(
            parse_int(parts[0], 64),
            parse_int(parts[1], 64),
            parse_int(parts[2], 64),
            parse_int(parts[3], 32),
            parts[4],
            parts[5],
            parse_int(parts[6], 32),
            parse_int(parts[7], 64) if len(parts) >= _ALL_PARTS else None,
        )
    except ValueError as error:
        raise ProtocolError(f"extra info {text!r:.200}: {error}") from None


def split_extra_info(text: str) -> tuple[str, int] | None:
    """Return the parts of a POP_CK before its queue offset, and this; None: it has no queue offset.

    Raises:
        ProtocolError: the queue offset is not a number.
    """
    if text.count(" ") != _ALL_PARTS - 1:
        return None
    head, _, offset = text.rpartition(" ")
    try:
        return head, parse_int(offset, 64)
    except ValueError as error:
        raise ProtocolError(f"extra info {text!r:.200}: {error}") from None


def renewed_extra_info(
    info: PopExtraInfo, offset: int, *, pop_time: int, invisible_time: int, revive_qid: int
) -> PopExtraInfo:
    """Return the extra info of a message after its invisible time was changed, from the broker's answer.

    ``offset`` is the message's queue offset: the message alone is the new check point.
    """
    return replace(
        info,
        start_offset=offset,
        pop_time=pop_time,
        invisible_time=invisible_time,
        revive_qid=revive_qid,
        queue_offset=offset,
    )


def parse_offset_info(text: str | None) -> dict[str, int]:
    """``start_offset_info``, ``order_count_info`` by :func:`queue_key`, :func:`offset_key`; none: empty.

    Raises:
        ProtocolError: not of the form above, or a word twice.
    """
    return _parse_info(text, lambda value: parse_int(value, 64))


def parse_msg_offset_info(text: str | None) -> dict[str, tuple[int, ...]]:
    """``msg_offset_info`` by :func:`queue_key`; none: empty.

    Raises:
        ProtocolError: not of the form above, or a word twice.
    """
    return _parse_info(text, lambda value: parse_ints(value.split(","), 64))


def queue_key(type_: str, queue_id: int) -> str:
    """Return the key of a queue in the tables of an answer."""
    return f"{type_}@{queue_id}"


def offset_key(type_: str, queue_id: int, queue_offset: int) -> str:
    """Return the key of a message in ``order_count_info``."""
    return f"{type_}@qo{queue_id}%{queue_offset}"


def _parse_info(text: str | None, parse_value: Callable[[str], V]) -> dict[str, V]:
    found: dict[str, V] = {}
    entries = (text or "").rstrip(";")
    for entry in entries.split(";") if entries else ():
        parts = entry.split(" ")
        if len(parts) != 3:
            raise ProtocolError(f"pop info {text!r:.200}: {entry!r:.50} is not 'type queue value'")
        key = f"{parts[0]}@{parts[1]}"
        if key in found:
            raise ProtocolError(f"pop info {text!r:.200} has {key} twice")
        try:
            found[key] = parse_value(parts[2])
        except ValueError as error:
            raise ProtocolError(f"pop info {text!r:.200}: {error}") from None
    return found
