"""Encodes many rows as batch messages, column by column, without a Python object per row.

Each part of a message is an array with one element per row. One Arrow kernel joins them row by row. The
buffer of the result is the body of a batch (see ``protocol.messages.batch``):

    head: 5 x i32 | body | properties_length: i16 | properties

Properties come in the order of ``engine.producer.encode_send``: the user's, KEYS, TAGS, __SHARDINGKEY,
UNIQ_KEY, WAIT.
"""

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow.rows import Rows
from rmqtools.arrow.spans import Positions, bytes_scalar
from rmqtools.model.encoded_batch import MsgIds
from rmqtools.model.message_const import (
    PROPERTY_KEYS,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
)
from rmqtools.protocol.messages.batch import FIXED_BYTES
from rmqtools.protocol.messages.properties import NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR, format_properties

_HEAD: Final = np.dtype(
    [("size", ">i4"), ("magic", ">i4"), ("crc", ">i4"), ("flag", ">i4"), ("body_length", ">i4")]
)
_NOTHING: Final = bytes_scalar(b"")
_NAME_END: Final = bytes_scalar(NAME_VALUE_SEPARATOR.encode())
_VALUE_END: Final = bytes_scalar(PROPERTY_SEPARATOR.encode())
_HEX_DIGITS: Final = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_COUNTER_DIGITS: Final = 4
_COLUMNS: Final = {"keys": PROPERTY_KEYS, "tags": PROPERTY_TAGS, "shardingKey": PROPERTY_SHARDING_KEY}


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Messages back to back; message ``i`` is ``data[offsets[i]:offsets[i + 1]]``."""

    data: memoryview
    offsets: npt.NDArray[np.int32]

    def slice(self, begin: int, end: int) -> memoryview:
        """Return the bytes of messages ``[begin, end)``."""
        return self.data[self.offsets[begin] : self.offsets[end]]


def user_properties(rows: Rows) -> pa.Array:
    """Encode the properties of every row that users set: all but UNIQ_KEY and WAIT."""
    parts = [] if (column := rows.column("properties")) is None else [map_text(column)]
    for name, column in rows.extra.items():
        parts += _pair_parts(name, column)
    for name, written in _COLUMNS.items():
        if (column := rows.column(name)) is not None:
            parts += _pair_parts(written, _nothing_as_null(column))
    return join_bytes(*parts) if parts else _constant(b"", len(rows))


def encode_rows(rows: Rows, properties: pa.Array, msg_ids: MsgIds) -> EncodedRows:
    """Encode rows that ``check_rows`` has passed.

    Args:
        rows: the rows to encode; delays and explicit queues are not encoded.
        properties: their :func:`user_properties`.
        msg_ids: the unique ids, one per row.
    """
    body, own = rows.columns.column("body"), _own_properties(msg_ids)
    head = np.zeros(len(rows), _HEAD)
    properties_length = np.diff(_offsets(properties)) + np.diff(_offsets(own))
    head["body_length"] = np.diff(_offsets(body))
    head["size"] = FIXED_BYTES + head["body_length"] + properties_length
    messages = join_bytes(
        fixed_bytes(head), body, fixed_bytes(properties_length.astype(">i2")), properties, own
    )
    return EncodedRows(memoryview(messages.buffers()[2] or b""), _offsets(messages))


def byte_lengths(column: pa.Array) -> Positions:
    """Return the number of bytes of every element; 0 for null."""
    return np.asarray(pc.fill_null(pc.binary_length(column), 0)).astype(np.int64)


def all_bytes(column: pa.Array) -> bytes:
    """Return the elements of a binary column back to back; may include bytes of null elements."""
    _, _, data = column.buffers()
    offsets = _offsets(column)
    return b"" if data is None else data[int(offsets[0]) : int(offsets[-1])].to_pybytes()


def join_bytes(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """Join the parts of every row; null adds nothing."""
    return pc.binary_join_element_wise(*parts, _NOTHING, null_handling="replace", null_replacement="")


def _pair_parts(name: str, values: pa.Array) -> list[pa.Array | pa.Scalar]:
    """Return the parts ``name 0x01 value 0x02`` of every row; none for null."""
    start = bytes_scalar(f"{name}{NAME_VALUE_SEPARATOR}".encode())
    written = values.cast(pa.binary())  # a dictionary's nulls are only then counted
    parts = [start, written, _VALUE_END]
    return [pc.binary_join_element_wise(*parts, _NOTHING)] if written.null_count else parts


def _nothing_as_null(column: pa.Array) -> pa.Array:
    """Replace empty tags and keys by null."""
    empty = pc.equal(pc.binary_length(column), 0)
    return pc.if_else(empty, pa.scalar(None, column.type), column) if pc.any(empty).as_py() else column


def map_entries(column: pa.Array) -> tuple[pa.Array, pa.Array, npt.NDArray[np.int32]]:
    """Return names and values of all maps' entries, and where each map's entries begin, and the last end."""
    if column.null_count:
        column = column.take(pa.array(np.arange(len(column))))  # so that a null row has no entries
    bounds = np.asarray(column.offsets)
    entries = slice(int(bounds[0]), int(bounds[-1]))
    names, values = column.keys[entries], column.items[entries]
    return names.cast(pa.binary()), values.cast(pa.binary()), bounds - bounds[0]


def map_text(column: pa.Array) -> pa.Array:
    """Encode the entries of every row's map. They already follow one another in the child arrays."""
    names, values, bounds = map_entries(column)
    written = pc.binary_join_element_wise(names, _NAME_END, values, _VALUE_END, _NOTHING)
    return _binary(np.ascontiguousarray(_offsets(written)[bounds]), written.buffers()[2])


def _own_properties(msg_ids: MsgIds) -> pa.Array:
    """Encode UNIQ_KEY and WAIT of every row, which differ only in the last digits of the id."""
    zeros = msg_ids.prefix + "0" * _COUNTER_DIGITS
    text = format_properties(
        {PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX: zeros, PROPERTY_WAIT_STORE_MSG_OK: "true"}
    ).encode()
    end = len(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) + len(NAME_VALUE_SEPARATOR) + len(zeros)
    rows = np.tile(np.frombuffer(text, np.uint8), (len(msg_ids), 1))
    counter = msg_ids.first + np.arange(len(msg_ids))
    for digit in range(_COUNTER_DIGITS):
        rows[:, end - 1 - digit] = _HEX_DIGITS[counter >> 4 * digit & 15]
    return fixed_bytes(rows)


def fixed_bytes(rows: npt.NDArray[Any]) -> pa.Array:
    """Return the bytes of every row of a contiguous array as a binary column."""
    width = rows.itemsize * prod(rows.shape[1:])
    return _binary(np.arange(len(rows) + 1, dtype=np.int32) * np.int32(width), pa.py_buffer(rows))


def _constant(value: bytes, count: int) -> pa.Array:
    return pa.repeat(bytes_scalar(value), count)


def _binary(offsets: npt.NDArray[np.int32], data: pa.Buffer | None) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), data])


def _offsets(column: pa.Array) -> npt.NDArray[np.int32]:
    """Return where the elements begin and end in the array's buffer."""
    _, offsets, _ = column.buffers()
    return np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
