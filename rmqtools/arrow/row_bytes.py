"""The values of whole rows as bytes, and hashes of them: equal rows have equal bytes, and only they.

Each value follows its length, column by column (big-endian; the length of null is 0xFFFFFFFF):

    length: u32 | value | length: u32 | value | ...
"""

from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow.encode_rows import fixed_bytes, join_bytes, map_text

_NULL: Final = 0xFFFF_FFFF  # no value has this length
_PLACE: Final = ("queueId", "brokerName")
_KEY: Final = "shardingKey"  # which copies have in those of their batches that have a key
DIGEST_BITS: Final = 128


def row_bytes(batch: pa.RecordBatch, names: Sequence[str]) -> pa.Array:
    """Return for every row the values of some columns, each after its length (u32), as one binary column.

    Takes columns of text, bytes, numbers, times, booleans, and maps from text to text.
    """
    return _joined(batch, names)


def digest_of(batch: pa.RecordBatch) -> int:
    """Return a number that depends on the rows, and not on their order: the sum of their hashes.

    It has ``DIGEST_BITS`` bits; the digest of several batches is their sum, without higher bits. Columns that
    choose the queue are left out, and a sharding key that is null: it counts as no column of it.
    """
    encoded = _joined(batch, sorted(set(batch.schema.names) - set(_PLACE)), left_out_if_null=_KEY)
    _, offsets, data = encoded.buffers()
    ends, view = np.frombuffer(offsets, np.int32)[: len(encoded) + 1].tolist(), memoryview(data or b"")
    hashes = b"".join([sha256(view[begin:end]).digest() for begin, end in pairwise(ends)])
    parts = np.frombuffer(hashes, "<u4").reshape(len(encoded), -1)[:, : DIGEST_BITS // 32]
    sums: list[int] = parts.sum(0, np.uint64).tolist()
    return sum(part << 32 * place for place, part in enumerate(sums)) % (1 << DIGEST_BITS)


def _joined(batch: pa.RecordBatch, names: Sequence[str], *, left_out_if_null: str = "") -> pa.Array:
    parts: list[pa.Array] = []
    for name in names:
        value = _value_bytes(batch.column(name))
        length = np.asarray(pc.fill_null(pc.binary_length(value), -1)).astype(np.int64)
        written = fixed_bytes((length & _NULL).astype(">u4"))
        if name == left_out_if_null:
            written = pc.if_else(value.is_valid(), written, pa.scalar(None, pa.binary()))
        parts += [written, value]
    return join_bytes(*parts)


def _value_bytes(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_map(kind):
        return pc.if_else(column.is_valid(), map_text(column), pa.scalar(None, pa.binary()))
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        return column.cast(pa.binary())
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    return column.cast(pa.string()).cast(pa.binary())
