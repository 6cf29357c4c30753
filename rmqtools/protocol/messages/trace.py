"""Message trace: records of sent messages, as text in messages of the trace topic.

    Pub \\x01 time \\x01 region \\x01 group \\x01 topic \\x01 msg id \\x01 tags \\x01 keys \\x01 store host
        \\x01 body length \\x01 cost ms \\x01 message type \\x01 offset msg id \\x01 success \\x02

Records follow one another; missing texts are written as ``null``. A trace message has the ids and keys of the
traced messages as its keys. Source of the rule: TraceDataEncoder (Java client).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

_FIELD = "\x01"
_END = "\x02"
_NONE = "null"
_PUB = "Pub"


class TraceMessageType(IntEnum):
    """The kind of a message (MessageType of the Java client, in its order)."""

    NORMAL = 0
    TRANS_HALF = 1
    TRANS_COMMIT = 2
    DELAY = 3
    ORDER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PubTrace:
    """One stored message."""

    timestamp_ms: int
    region_id: str
    group: str
    topic: str
    msg_id: str
    tags: str | None
    keys: str | None
    store_host: str
    body_length: int
    cost_ms: int
    message_type: TraceMessageType
    offset_msg_id: str
    success: bool


def format_pub(trace: PubTrace) -> str:
    """Write one record."""
    fields = (
        _PUB,
        str(trace.timestamp_ms),
        trace.region_id,
        trace.group,
        trace.topic,
        trace.msg_id,
        trace.tags or _NONE,
        trace.keys or _NONE,
        trace.store_host,
        str(trace.body_length),
        str(trace.cost_ms),
        str(int(trace.message_type)),
        trace.offset_msg_id,
        "true" if trace.success else "false",
    )
    return _FIELD.join(fields) + _END


def trace_keys(traces: Iterable[PubTrace]) -> list[str]:
    """Return the keys of a trace message, each once, in order."""
    return list(dict.fromkeys(key for trace in traces for key in (trace.msg_id, *(trace.keys or "").split())))
