"""Message trace: what a client tells of the messages it sent, as text in messages of the trace topic.

    Pub \\x01 time \\x01 region \\x01 group \\x01 topic \\x01 msg id \\x01 tags \\x01 keys \\x01 store host
        \\x01 body length \\x01 cost ms \\x01 message type \\x01 offset msg id \\x01 success \\x02

Records follow one another; texts that are not there read ``null``. A trace message has as keys the ids and
keys of the messages it tells of. Source of the rule: TraceDataEncoder (Java client).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from rmqtools.errors import ProtocolError

_FIELD = "\x01"
_END = "\x02"
_NONE = "null"
_PUB = "Pub"
_PUB_FIELDS = 14


class TraceMessageType(IntEnum):
    """What kind of message it was (MessageType of the Java client, in its order)."""

    NORMAL = 0
    TRANS_HALF = 1
    TRANS_COMMIT = 2
    DELAY = 3
    ORDER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PubTrace:
    """One message that was stored."""

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


def parse_pubs(text: str) -> list[PubTrace]:
    """Read the Pub records of a trace message; records of other kinds are passed over.

    Raises:
        ProtocolError: a Pub record that is cut off or has no numbers where they belong.
    """
    records = (record.split(_FIELD) for record in text.split(_END))
    return [_parse_pub(fields) for fields in records if fields[0] == _PUB]


def trace_keys(traces: Iterable[PubTrace]) -> list[str]:
    """The keys a trace message is found by, each once, in order."""
    return list(dict.fromkeys(key for trace in traces for key in (trace.msg_id, *(trace.keys or "").split())))


def _parse_pub(fields: list[str]) -> PubTrace:
    if len(fields) < _PUB_FIELDS:
        raise ProtocolError(f"trace record of {len(fields)} fields: want {_PUB_FIELDS}")
    try:
        return PubTrace(
            timestamp_ms=int(fields[1]),
            region_id=fields[2],
            group=fields[3],
            topic=fields[4],
            msg_id=fields[5],
            tags=_text(fields[6]),
            keys=_text(fields[7]),
            store_host=fields[8],
            body_length=int(fields[9]),
            cost_ms=int(fields[10]),
            message_type=TraceMessageType(int(fields[11])),
            offset_msg_id=fields[12],
            success=fields[13] == "true",
        )
    except ValueError as error:
        raise ProtocolError(f"trace record {fields[:_PUB_FIELDS]}: {error}") from error


def _text(field: str) -> str | None:
    return None if field == _NONE else field
