"""Records of the trace topic as text: several in the body of a message.

    Pub \\x01 time \\x01 region \\x01 group \\x01 topic \\x01 msg id \\x01 tags \\x01 keys \\x01 store host
        \\x01 body length \\x01 cost ms \\x01 message type \\x01 offset msg id \\x01 success \\x02
    SubBefore \\x01 time \\x01 region \\x01 group \\x01 request id \\x01 msg id
        \\x01 retry times \\x01 keys \\x02
    SubAfter \\x01 request id \\x01 msg id \\x01 cost ms \\x01 success \\x01 keys \\x01 return type
        \\x01 time \\x01 group \\x02
    EndTransaction \\x01 time \\x01 region \\x01 group \\x01 topic \\x01 msg id \\x01 tags \\x01 keys
        \\x01 store host \\x01 message type \\x01 transaction id \\x01 state \\x01 from check \\x02

Records follow one another; missing texts are written as ``null``. A trace message has the ids and keys of the
traced messages as its keys. Older clients leave out fields: of Pub the offset msg id, of SubAfter all after
the keys. Newer ones may add some at the end.
Source of the rule: TraceDataEncoder (Java client).
"""

from collections.abc import Callable, Iterable, Sequence

from rmqtools.errors import ProtocolError
from rmqtools.model.trace import (
    EndTransactionTrace,
    PubTrace,
    SubAfterTrace,
    SubBeforeTrace,
    Trace,
    TraceMessageType,
)

_FIELD = "\x01"
_END = "\x02"
_NONE = "null"
_PUB, _SUB_BEFORE, _SUB_AFTER, _END_TRANSACTION = "Pub", "SubBefore", "SubAfter", "EndTransaction"
_LONGEST_ERROR = 200  # characters of a record


def format_pub(trace: PubTrace) -> str:
    """Write the record of a stored message."""
    return _record(
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
        _flag(trace.success),
    )


def format_sub_before(trace: SubBeforeTrace) -> str:
    """Write the record of a message that a listener is about to get."""
    return _record(
        _SUB_BEFORE,
        str(trace.timestamp_ms),
        trace.region_id or _NONE,
        trace.group,
        trace.request_id,
        trace.msg_id,
        str(trace.retry_times),
        trace.keys or _NONE,
    )


def format_sub_after(trace: SubAfterTrace) -> str:
    """Write the record of a message whose listener call has ended."""
    return _record(
        _SUB_AFTER,
        trace.request_id,
        trace.msg_id,
        str(trace.cost_ms),
        _flag(trace.success),
        trace.keys or _NONE,
        str(int(trace.return_type)),
        str(trace.timestamp_ms or 0),
        trace.group or _NONE,
    )


def parse_traces(body: bytes) -> list[Trace]:
    """Read the records of a trace message; records of unknown kinds are passed over.

    Raises:
        ProtocolError: the body is no UTF-8, or a record is cut off or has no number where one belongs.
    """
    try:
        records = [record.split(_FIELD) for record in body.decode().split(_END)]
    except UnicodeDecodeError as error:
        raise ProtocolError(f"trace message: {error}") from error
    return [_parse(fields) for fields in records if fields[0] in _PARSERS]


def trace_keys(traces: Iterable[PubTrace | SubBeforeTrace | SubAfterTrace]) -> list[str]:
    """Return the keys of a trace message, each once, in order."""
    return list(dict.fromkeys(key for trace in traces for key in (trace.msg_id, *(trace.keys or "").split())))


def _record(*fields: str) -> str:
    return _FIELD.join(fields) + _END


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _parse(fields: Sequence[str]) -> Trace:
    try:
        return _PARSERS[fields[0]](fields)
    except (ValueError, IndexError) as error:
        raise ProtocolError(f"trace record {_FIELD.join(fields)[:_LONGEST_ERROR]!r}: {error}") from error


def _parse_pub(fields: Sequence[str]) -> PubTrace:
    is_old = len(fields) == 13  # without the offset msg id
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
        offset_msg_id="" if is_old else fields[12],
        success=fields[12 if is_old else 13] == "true",
    )


def _parse_sub_before(fields: Sequence[str]) -> SubBeforeTrace:
    return SubBeforeTrace(
        timestamp_ms=int(fields[1]),
        region_id=_text(fields[2]),
        group=fields[3],
        request_id=fields[4],
        msg_id=fields[5],
        retry_times=int(fields[6]),
        keys=_text(fields[7]),
    )


def _parse_sub_after(fields: Sequence[str]) -> SubAfterTrace:
    has_end = len(fields) >= 9
    return SubAfterTrace(
        request_id=fields[1],
        msg_id=fields[2],
        cost_ms=int(fields[3]),
        success=fields[4] == "true",
        keys=_text(fields[5]),
        return_type=int(fields[6]) if len(fields) > 6 else 0,
        timestamp_ms=int(fields[7]) if has_end else None,
        group=fields[8] if has_end else None,
    )


def _parse_end_transaction(fields: Sequence[str]) -> EndTransactionTrace:
    return EndTransactionTrace(
        timestamp_ms=int(fields[1]),
        group=fields[3],
        topic=fields[4],
        msg_id=fields[5],
        state=fields[11],
        from_check=fields[12] == "true",
    )


def _text(field: str) -> str | None:
    return None if field == _NONE else field


_PARSERS: dict[str, Callable[[Sequence[str]], Trace]] = {
    _PUB: _parse_pub,
    _SUB_BEFORE: _parse_sub_before,
    _SUB_AFTER: _parse_sub_after,
    _END_TRANSACTION: _parse_end_transaction,
}
