"""Cut the properties of many messages at once.

The text of one message is ``name 0x01 value 0x02`` over and over. Texts that are not exactly that
are *odd* and left to the row by row decoder, which knows what Java makes of them: a value that
contains 0x01, an empty name or value, text without 0x01, a missing last 0x02, a name given twice,
bytes that are not UTF-8.

Source of the rule: MessageDecoder.string2messageProperties (Java client).
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rmqtools.arrow.schema import PROPERTIES
from rmqtools.arrow.spans import Bytes, Mask, Positions, Spans, cut_bytes, cut_spans
from rmqtools.arrow.texts import is_utf8

_NAME_END: Final = 1
_VALUE_END: Final = 2
_MASK_BITS: Final = 48  # names told apart by one bit each; sums of up to 2**15 of them fit 64 bits


@dataclass(frozen=True, slots=True)
class PropertyText:
    """The property texts of messages, back to back; text ``i`` is ``data[offsets[i]:offsets[i + 1]]``."""

    data: Bytes
    offsets: npt.NDArray[np.int32]

    @classmethod
    def cut(cls, data: Bytes, spans: Spans) -> "PropertyText":
        """Copy the texts out of a block."""
        offsets = np.zeros(len(spans) + 1, np.int32)
        np.cumsum(spans.end - spans.begin, out=offsets[1:])
        return cls(cut_bytes(data, spans), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True)
class Properties:
    """Name and value of every property, and how many each message has."""

    names: pa.Array
    values: pa.Array
    codes: npt.NDArray[np.int32]
    dictionary: pa.Array
    offsets: npt.NDArray[np.int32]

    def map_column(self) -> pa.Array:
        """All of them, as the column ``properties``."""
        return pa.MapArray.from_arrays(pa.array(self.offsets), self.names, self.values, PROPERTIES)

    def value_column(self, name: str) -> pa.Array:
        """The value of one property in every message, null where there is none."""
        code = self.dictionary.index(name).as_py()
        found = np.full(len(self.offsets) - 1, -1, np.int64)
        if code >= 0:
            places = np.flatnonzero(self.codes == code)
            found[np.searchsorted(self.offsets, places, side="right") - 1] = places
        return self.values.take(pa.array(found, mask=found < 0))


def cut_properties(text: PropertyText) -> Properties | Mask:
    """Return the properties, or, if some texts are odd, a mask of such texts: call again without them.

    Texts beside an odd one may hide oddities of their own, so the next call may return another mask.
    """
    name_ends = np.flatnonzero(text.data == _NAME_END)
    value_ends = np.flatnonzero(text.data == _VALUE_END)
    odd = _uneven_texts(text, name_ends, value_ends)
    if not odd.any():
        odd = _odd_entries(text, name_ends, value_ends)
    if not odd.any():
        odd = _invalid_texts(text)
    if odd.any():
        return odd
    properties = _cut_entries(text, name_ends, value_ends)
    odd = _repeated_names(properties)
    return odd if odd.any() else properties


def _uneven_texts(text: PropertyText, name_ends: Positions, value_ends: Positions) -> Mask:
    """Texts with more of one separator than of the other, or that do not end in the second."""
    starts, ends = text.offsets[:-1], text.offsets[1:]
    names = np.searchsorted(name_ends, text.offsets)
    values = np.searchsorted(value_ends, text.offsets)
    odd: Mask = np.diff(names) != np.diff(values)
    filled = np.flatnonzero(starts < ends)
    odd[filled] |= text.data[ends[filled] - 1] != _VALUE_END
    return odd


def _odd_entries(text: PropertyText, name_ends: Positions, value_ends: Positions) -> Mask:
    """Texts with an entry that is not ``name 0x01 value 0x02``; separators are even in number by now."""
    name_starts = _name_starts(value_ends)
    wrong = np.flatnonzero((name_ends <= name_starts) | (value_ends <= name_ends + 1))
    odd = np.zeros(len(text), np.bool_)
    odd[np.searchsorted(text.offsets, value_ends[wrong], side="right") - 1] = True
    return odd


def _invalid_texts(text: PropertyText) -> Mask:
    """Texts that are not UTF-8. Each ends in ASCII, so all are valid where their concatenation is."""
    odd = np.zeros(len(text), np.bool_)
    if not is_utf8(text.data):
        for row in np.flatnonzero(_with_high_bytes(text)):
            odd[row] = not is_utf8(text.data[text.offsets[row] : text.offsets[row + 1]])
    return odd


def _with_high_bytes(text: PropertyText) -> Mask:
    high = np.flatnonzero(text.data >= 0x80)
    found: Mask = np.diff(np.searchsorted(high, text.offsets)) > 0
    return found


def _name_starts(value_ends: Positions) -> Positions:
    starts = np.empty_like(value_ends)
    starts[:1] = 0
    starts[1:] = value_ends[:-1] + 1
    return starts


def _cut_entries(text: PropertyText, name_ends: Positions, value_ends: Positions) -> Properties:
    names = cut_spans(text.data, Spans(_name_starts(value_ends), name_ends), pa.string())
    values = cut_spans(text.data, Spans(name_ends + 1, value_ends), pa.string())
    encoded = names.dictionary_encode()
    return Properties(
        names=names,
        values=values,
        codes=encoded.indices.to_numpy(),
        dictionary=encoded.dictionary,
        offsets=np.searchsorted(value_ends, text.offsets).astype(np.int32),
    )


def _repeated_names(properties: Properties) -> Mask:
    """Texts in which a name comes twice: there the sum of one bit per name differs from their union."""
    counts = np.diff(properties.offsets)
    odd = np.zeros(len(counts), np.bool_)
    if len(properties.dictionary) > _MASK_BITS:
        return _repeated_codes(properties, odd)
    filled = np.flatnonzero(counts)
    if len(filled):
        bits = np.uint64(1) << properties.codes.astype(np.uint64)
        starts: npt.NDArray[Any] = properties.offsets[filled]
        odd[filled] = np.add.reduceat(bits, starts) != np.bitwise_or.reduceat(bits, starts)
    return odd


def _repeated_codes(properties: Properties, odd: Mask) -> Mask:
    """The same for any number of names, by sorting."""
    rows = np.repeat(np.arange(len(odd)), np.diff(properties.offsets))
    pairs = np.sort(rows * len(properties.dictionary) + properties.codes)
    odd[pairs[1:][pairs[1:] == pairs[:-1]] // len(properties.dictionary)] = True
    return odd
