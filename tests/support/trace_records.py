"""Reads a producer's records from the trace topic."""

from rmqtools.errors import ProtocolError
from rmqtools.protocol.messages.trace import PubTrace, TraceMessageType

_FIELD = "\x01"
_END = "\x02"
_NONE = "null"
_PUB = "Pub"
_PUB_FIELDS = 14


def parse_pubs(text: str) -> list[PubTrace]:
    """Read the Pub records of a trace message; records of other kinds are passed over.

    Raises:
        ProtocolError: a Pub record that is cut off or has no numbers where they belong.
    """
    records = (record.split(_FIELD) for record in text.split(_END))
    return [_parse_pub(fields) for fields in records if fields[0] == _PUB]


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
