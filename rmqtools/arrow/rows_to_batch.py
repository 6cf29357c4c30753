"""Makes a record batch of decoded messages, value by value: for messages that are not plain."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rmqtools.arrow.schema import MESSAGE_SCHEMA, TIMESTAMP
from rmqtools.arrow.spans import number_array
from rmqtools.errors import BodyTooLargeError
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.read_columns import COLUMN_BY_NAME

# Beyond these milliseconds, microseconds do not fit into 64 bits.
_LAST_MS = (2**63 - 1) // 1000
_MOST_BINARY_BYTES = 2**31 - 2  # of a column; its offsets have 32 bits


def rows_to_batch(
    messages: Sequence[MessageExt], queue: MessageQueue, schema: pa.Schema = MESSAGE_SCHEMA
) -> pa.RecordBatch:
    """Return messages of a queue as one batch of ``schema``."""
    values = [_VALUES.get(name) or COLUMN_BY_NAME[name].value for name in schema.names]
    arrays = [
        _array([value(message, queue) for message in messages], kind)
        for value, kind in zip(values, schema.types, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if kind == TIMESTAMP:
        return timestamp_column(np.array(values, np.int64))
    return _binary_array(values) if pa.types.is_binary(kind) else pa.array(values, kind)


def _binary_array(values: Sequence[bytes | None]) -> pa.Array:
    """Like ``pa.array``, which needs three times the memory of large bodies; one body is not even copied."""
    found = [value or b"" for value in values]
    if sum(map(len, found)) > _MOST_BINARY_BYTES:
        return pa.array(values, pa.binary())  # which refuses them
    data = found[0] if len(found) == 1 else b"".join(found)
    ends = np.cumsum([0, *map(len, found)], dtype=np.int32)
    is_there = None if None not in values else pa.array([value is not None for value in values]).buffers()[1]
    buffers = [is_there, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(found), buffers)


def body_or_none(message: MessageExt) -> bytes | None:
    """Return the body of a message; None where it cannot be read.

    Raises:
        BodyTooLargeError: the reader's setting refuses it.
    """
    error = message.body_error
    if isinstance(error, BodyTooLargeError):
        raise error
    return message.body if error is None else None


_VALUES: Mapping[str, Callable[[MessageExt, MessageQueue], object]] = {
    "body": lambda message, _: body_or_none(message)
}


def timestamp_column(milliseconds: npt.NDArray[np.int64]) -> pa.Array:
    """Return times in microseconds; null for those that do not fit into 64 bits (producers set any value)."""
    too_far = (milliseconds > _LAST_MS) | (milliseconds < -_LAST_MS)
    microseconds = np.where(too_far, 0, milliseconds) * 1000
    return number_array(microseconds, too_far).view(TIMESTAMP)
