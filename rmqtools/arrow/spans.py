"""Cut many pieces out of one buffer into an Arrow array, without a Python object per piece."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes: TypeAlias = npt.NDArray[np.uint8]
Positions: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Spans:
    """Pieces ``[begin, end)`` of a buffer, ascending, none overlapping another."""

    begin: Positions
    end: Positions

    def __len__(self) -> int:
        return len(self.begin)

    def select(self, keep: Mask) -> "Spans":
        """The spans where ``keep`` is true."""
        return Spans(self.begin[keep], self.end[keep])


def cut_spans(data: Bytes, spans: Spans, kind: pa.DataType) -> pa.Array:
    """Return the pieces as one contiguous string or binary array.

    Spans and the gaps between them alternate over the same buffer, so both together are a valid
    array of twice the length; taking its even entries copies the pieces and leaves the gaps.
    """
    count = len(spans)
    if count == 0:
        return pa.array([], kind)
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0:-1:2] = spans.begin
    offsets[1::2] = spans.end
    offsets[-1] = spans.end[-1]
    both = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return both.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))


def cut_bytes(data: Bytes, spans: Spans) -> Bytes:
    """Return the bytes of the pieces, back to back."""
    _, offsets, content = cut_spans(data, spans, pa.binary()).buffers() if len(spans) else (None, None, None)
    if offsets is None or content is None:
        return np.empty(0, np.uint8)
    end = np.frombuffer(offsets, np.int32)[len(spans)]
    return np.frombuffer(content, np.uint8, int(end))


def repeat_text(text: str, count: int) -> pa.Array:
    """Return a string array that holds ``text`` ``count`` times."""
    raw = text.encode()
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(len(raw))
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(raw * count)])
