"""Copies many pieces of one buffer into an Arrow array, without a Python object per piece.

Arrays and scalars are made of buffers here: ``pa.array``, ``pa.scalar`` and ``to_numpy`` import pandas if it
is installed. That takes 0.2 s in every process that Spark starts to plan or to read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes: TypeAlias = npt.NDArray[np.uint8]
Positions: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Offsets: TypeAlias = npt.NDArray[np.int32]
"""Offsets of an Arrow array: item ``i`` is ``[offsets[i], offsets[i + 1])`` of its content."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Pieces ``[begin, end)`` of a buffer, ascending, without overlaps."""

    begin: Positions
    end: Positions

    def __len__(self) -> int:
        return len(self.begin)

    def select(self, keep: Mask) -> "Spans":
        """Return the spans for which ``keep`` is true."""
        return Spans(self.begin[keep], self.end[keep])


def cut_spans(data: Bytes, spans: Spans, kind: pa.DataType) -> pa.Array:
    """Return the pieces as one contiguous string or binary array.

    Spans and the gaps between them alternate over the same buffer, so both together are a valid
    array of twice the length; taking its even entries copies the pieces and leaves the gaps.
    """
    count = len(spans)
    if count == 0:
        return pa.nulls(0, kind)
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0:-1:2] = spans.begin
    offsets[1::2] = spans.end
    offsets[-1] = spans.end[-1]
    both = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return both.take(number_array(np.arange(0, 2 * count, 2, dtype=np.int32)))


def content_of(pieces: pa.Array) -> tuple[Bytes, Offsets]:
    """Return the bytes of an array that :func:`cut_spans` made, back to back, and its offsets."""
    _, places, content = pieces.buffers()
    if places is None or content is None:
        return np.empty(0, np.uint8), np.zeros(len(pieces) + 1, np.int32)
    offsets = np.frombuffer(places, np.int32, len(pieces) + 1)
    return np.frombuffer(content, np.uint8, int(offsets[-1])), offsets


def cut_fixed(data: Bytes, begin: Positions, width: int) -> npt.NDArray[np.void]:
    """Return ``width`` bytes from each position, as one item each.

    The caller guarantees that all of them are inside ``data``, and that ``width`` is not 0.
    """
    every = np.ndarray((max(0, data.size - width + 1),), f"V{width}", data, strides=(1,))
    return every[begin]


def is_repeated(items: npt.NDArray[Any]) -> bool:
    """Return whether all items equal the first; ten times as fast as comparing one by one."""
    return items.tobytes() == items[:1].tobytes() * len(items)


def number_array(values: npt.NDArray[Any], missing: Mask | None = None) -> pa.Array:
    """Return numbers as an array that shares their memory; those that are ``missing`` are null."""
    valid = None
    if missing is not None and missing.any():
        valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, data])


def index_numbers(indices: pa.Array) -> Offsets:
    """Return the indices of a dictionary array, which are 32 bits wide, without null."""
    if not len(indices):
        return np.empty(0, np.int32)
    return np.frombuffer(indices.buffers()[1], np.int32)[indices.offset : indices.offset + len(indices)]


def text_array(texts: Sequence[str]) -> pa.Array:
    """Return a string array of a few texts."""
    raw = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, raw)], dtype=np.int32)
    data = pa.py_buffer(b"".join(raw))
    return pa.Array.from_buffers(pa.string(), len(raw), [None, pa.py_buffer(offsets), data])


def bytes_scalar(value: bytes) -> pa.Scalar:
    """Return a binary scalar."""
    offsets = pa.py_buffer(np.array([0, len(value)], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(value)])[0]


def repeat_text(text: str, count: int) -> pa.Array:
    """Return a string array that holds ``text`` ``count`` times."""
    raw = text.encode()
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(len(raw))
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(raw * count)])
