"""Columns in the one Arrow type that this package works with, whatever type the rows come in.

    large_binary, binary_view               binary
    large_string, string_view               string
    dictionary of any of these, of numbers  its values
    map of any of these                     map of the above

Spark sends large types with ``spark.sql.execution.arrow.useLargeVarTypes``; files may hold any of them. All
code behind this module sees only the types on the right. Their offsets have 32 bits, so a column holds at
most 2 GiB: batches are cut first. Large types keep their bytes where they are; only new offsets are made.

Rows may come in large types, views and dictionaries. ``arrow.canonical`` makes ordinary columns of them
before anything else sees them, and cuts batches first: a cast of a slice of a large column fails beyond 2
GiB, and a dictionary multiplies.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow.spans import Positions, number_array
from rmqtools.errors import MessageRejectedError

_BYTES_AT_ONCE: Final = 16 * 1024 * 1024  # of the columns that change, at most, unless one row has more
_MOST_BYTES: Final = 2**31 - 1  # of a value: an offset of 32 bits must reach its end


def canonical_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in order, with large types, views and dictionaries converted to plain types.

    Batches without such columns pass unchanged.

    Raises:
        MessageRejectedError: a value has 2 GiB or more.
    """
    for batch in batches:
        if all(is_canonical(kind) for kind in batch.schema.types):
            yield batch
        else:
            yield from map(_canonical_batch, _cut(batch))


def canonical_column(column: pa.Array) -> pa.Array:
    """Return a column in its canonical type; the same object if it has it. It must have less than 2 GiB."""
    kind = column.type
    if is_canonical(kind):
        return column
    if pa.types.is_dictionary(kind):
        values = column.dictionary  # which may hold more than 2 GiB, unlike the rows that it is taken for
        if _is_view(values.type):
            values = values.cast(pa.large_binary() if values.type == pa.binary_view() else pa.large_string())
        return canonical_column(values.take(column.indices))
    if pa.types.is_map(kind):
        bounds, missing = np.asarray(column.offsets), column.is_null() if column.null_count else None
        names, values = _entries(column)
        starts = number_array(bounds - bounds[0])
        return pa.MapArray.from_arrays(
            starts, canonical_column(names), canonical_column(values), mask=missing
        )
    if _is_view(kind):
        return column.cast(pa.binary() if kind == pa.binary_view() else pa.string())
    return _with_short_offsets(column)


def is_canonical(kind: pa.DataType) -> bool:
    """Return whether columns of this type stay unchanged; types that cannot be sent do, too."""
    if pa.types.is_map(kind):
        return is_canonical(kind.key_type) and is_canonical(kind.item_type)
    return not (pa.types.is_dictionary(kind) or _is_large(kind) or _is_view(kind))


def _canonical_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([canonical_column(one) for one in batch.columns], names=batch.schema.names)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield slices whose changed columns have few bytes: a dictionary's values multiply when written out."""
    sizes = np.zeros(batch.num_rows, np.int64)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        lengths = _lengths(column)
        if (longest := int(lengths.max(initial=0))) > _MOST_BYTES:
            raise MessageRejectedError(f"column {name!r} has a value of {longest} bytes: make it shorter")
        sizes += lengths
    if not batch.num_rows:
        yield batch
    ends, begin = np.cumsum(sizes), 0
    while begin < batch.num_rows:
        limit = (int(ends[begin - 1]) if begin else 0) + _BYTES_AT_ONCE
        end = max(begin + 1, int(np.searchsorted(ends, limit, "right")))
        yield batch.slice(begin, end - begin)
        begin = end


def _lengths(column: pa.Array) -> Positions:
    """Return the bytes of every value of a column that changes; 0 for columns that do not."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        each = np.append(_lengths_of_values(column.dictionary), 0)
        chosen: Positions = each[np.asarray(pc.fill_null(column.indices.cast(pa.int64()), len(each) - 1))]
        return chosen
    if pa.types.is_map(kind) and not is_canonical(kind):
        bounds = np.asarray(column.offsets).astype(np.int64)
        ends = np.concatenate([[0], np.cumsum(sum(map(_lengths_of_values, _entries(column))))])
        found: Positions = np.diff(ends[bounds - bounds[0]])
        return found
    return np.zeros(len(column), np.int64) if is_canonical(kind) else _lengths_of_values(column)


def _lengths_of_values(column: pa.Array) -> Positions:
    kind = column.type
    if pa.types.is_dictionary(kind) or pa.types.is_map(kind):
        return _lengths(column)
    if _is_view(kind) and len(column):
        # Arrow has no kernel for the lengths of views; the first 4 bytes of a view are its length
        views = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)
        lengths: Positions = views[column.offset : column.offset + len(column), 0].astype(np.int64)
        lengths[~np.asarray(column.is_valid())] = 0
        return lengths
    if _is_large(kind) or pa.types.is_binary(kind) or pa.types.is_string(kind):
        return np.asarray(pc.fill_null(pc.binary_length(column), 0)).astype(np.int64)
    return np.zeros(len(column), np.int64)


def _entries(column: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """Return the names and the values of all entries of a map column, which may be a slice."""
    bounds = np.asarray(column.offsets)
    first, count = int(bounds[0]), int(bounds[-1] - bounds[0])
    return column.keys.slice(first, count), column.items.slice(first, count)


def _with_short_offsets(column: pa.Array) -> pa.Array:
    """Return a large column with offsets of 32 bits from its own first byte on; its bytes are not copied.

    A cast would look at the offsets as they are, which exceed 32 bits at the end of a large buffer.
    """
    kind = pa.binary() if column.type == pa.large_binary() else pa.string()
    _, places, data = column.buffers()
    if not len(column) or places is None:
        return pa.nulls(0, kind)
    offsets = np.frombuffer(places, np.int64)[column.offset : column.offset + len(column) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    if last - first > _MOST_BYTES:  # bytes of null values
        return _with_short_offsets(column.take(number_array(np.arange(len(column)))))
    own = None if data is None else data.slice(first, last - first)
    valid = None
    if column.null_count:
        valid = pa.py_buffer(np.packbits(np.asarray(column.is_valid()), bitorder="little"))
    short = pa.py_buffer((offsets - first).astype(np.int32))
    return pa.Array.from_buffers(kind, len(column), [valid, short, own])


def _is_large(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_binary(kind) or pa.types.is_large_string(kind))


def _is_view(kind: pa.DataType) -> bool:
    return kind in (pa.binary_view(), pa.string_view())
