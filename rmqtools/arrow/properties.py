"""Parses the properties of many messages at once.

The text of one message is ``name 0x01 value 0x02``, repeated. All other texts are *odd* and are left
to the decoder of single rows, which treats them like Java: a value that
contains 0x01, an empty name or value, text without 0x01, a missing last 0x02, a name given twice,
bytes that are not UTF-8.

Source of the rule: MessageDecoder.string2messageProperties (Java client).
"""

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rmqtools.arrow.schema import PROPERTIES
from rmqtools.arrow.spans import (
    Bytes,
    Mask,
    Offsets,
    Positions,
    Spans,
    content_of,
    cut_spans,
    index_numbers,
    is_repeated,
    number_array,
)
from rmqtools.arrow.texts import is_utf8

_NAME_END: Final = 1
_VALUE_END: Final = 2
_MASK_BITS: Final = 48  # each name has one bit; sums of up to 2**15 of them fit into 64 bits


@dataclass(frozen=True, slots=True)
class PropertyText:
    """The property texts of messages, back to back; text ``i`` is ``data[offsets[i]:offsets[i + 1]]``."""

    data: Bytes
    offsets: Offsets

    @classmethod
    def cut(cls, data: Bytes, spans: Spans) -> "PropertyText":
        """Copy the texts from a block."""
        return cls(*content_of(cut_spans(data, spans, pa.binary())))

    def __len__(self) -> int:
        return len(self.offsets) - 1


class _Names(Protocol):
    """The names of the properties."""

    def repeated(self, offsets: Offsets) -> Mask:
        """Return the messages that have a name twice."""

    def places(self, name: str, offsets: Offsets) -> Positions:
        """Return each message's property of this name as its index among all; below 0: it has none."""


@dataclass(frozen=True, slots=True)
class _SameNames:
    """Every message has the same names in the same order, as messages of one kind of producer have."""

    names: list[str]

    def repeated(self, offsets: Offsets) -> Mask:
        return np.full(len(offsets) - 1, len(set(self.names)) < len(self.names))

    def places(self, name: str, offsets: Offsets) -> Positions:
        if name not in self.names:
            return np.full(len(offsets) - 1, -1, np.int64)
        return offsets[:-1] + np.int64(self.names.index(name))


@dataclass(frozen=True, slots=True)
class _MixedNames:
    """Names as codes: ``dictionary[codes[i]]`` is the name of property ``i``."""

    codes: npt.NDArray[np.int32]
    dictionary: list[str]

    def repeated(self, offsets: Offsets) -> Mask:
        """Return where the sum of one bit per name differs from the bits' union."""
        counts = np.diff(offsets)
        if len(self.dictionary) > _MASK_BITS:
            return self._repeated_codes(counts)
        odd = np.zeros(len(counts), np.bool_)
        filled = np.flatnonzero(counts)
        bits = np.uint64(1) << self.codes.astype(np.uint64)
        starts: npt.NDArray[Any] = offsets[filled]
        odd[filled] = np.add.reduceat(bits, starts) != np.bitwise_or.reduceat(bits, starts)
        return odd

    def _repeated_codes(self, counts: npt.NDArray[np.int32]) -> Mask:
        """Return the same for any number of names, by sorting."""
        odd = np.zeros(len(counts), np.bool_)
        rows = np.repeat(np.arange(len(counts)), counts)
        pairs = np.sort(rows * len(self.dictionary) + self.codes)
        odd[pairs[1:][pairs[1:] == pairs[:-1]] // len(self.dictionary)] = True
        return odd

    def places(self, name: str, offsets: Offsets) -> Positions:
        found = np.full(len(offsets) - 1, -1, np.int64)
        if name in self.dictionary:
            places = np.flatnonzero(self.codes == self.dictionary.index(name))
            found[np.searchsorted(offsets, places, side="right") - 1] = places
        return found


@dataclass(frozen=True, slots=True)
class Properties:
    """Name and value of every property; those of message ``i`` are ``offsets[i]`` to ``offsets[i + 1]``."""

    names: pa.Array
    values: pa.Array
    offsets: Offsets
    kinds: _Names

    def map_column(self) -> pa.Array:
        """Return all properties as the column ``properties``."""
        return pa.MapArray.from_arrays(number_array(self.offsets), self.names, self.values, PROPERTIES)

    def value_column(self, name: str) -> pa.Array:
        """Return the value of one property in every message; null if a message lacks it."""
        places = self.kinds.places(name, self.offsets)
        return self.values.take(number_array(places, places < 0))


def cut_properties(text: PropertyText) -> Properties | Mask:
    """Return the properties, or, if some texts are odd, a mask of such texts: call again without them.

    An odd text may hide other odd texts, so the next call may return another mask.
    """
    name_ends = np.flatnonzero(text.data == _NAME_END)
    value_ends = np.flatnonzero(text.data == _VALUE_END)
    if not _is_regular(text, name_ends, value_ends):
        odd = _uneven_texts(text, name_ends, value_ends)
        return odd if odd.any() else _odd_entries(text, name_ends, value_ends)
    if not is_utf8(text.data):
        return _invalid_texts(text)
    properties = _cut_entries(text, name_ends, value_ends)
    odd = properties.kinds.repeated(properties.offsets)
    return odd if odd.any() else properties


def _is_regular(text: PropertyText, name_ends: Positions, value_ends: Positions) -> bool:
    """Return whether every text consists of entries only; if not, the next functions find the odd ones."""
    if len(name_ends) != len(value_ends):
        return False
    return bool(_whole_entries(name_ends, value_ends).all()) and not len(_open_texts(text))


def _uneven_texts(text: PropertyText, name_ends: Positions, value_ends: Positions) -> Mask:
    """Return texts with unequal numbers of separators, or without the second one at their end."""
    names = np.searchsorted(name_ends, text.offsets)
    values = np.searchsorted(value_ends, text.offsets)
    odd: Mask = np.diff(names) != np.diff(values)
    odd[_open_texts(text)] = True
    return odd


def _odd_entries(text: PropertyText, name_ends: Positions, value_ends: Positions) -> Mask:
    """Return texts with an entry that is not ``name 0x01 value 0x02``; separators are equal in number."""
    wrong = ~_whole_entries(name_ends, value_ends)
    odd = np.zeros(len(text), np.bool_)
    odd[np.searchsorted(text.offsets, value_ends[wrong], side="right") - 1] = True
    return odd


def _whole_entries(name_ends: Positions, value_ends: Positions) -> Mask:
    """Return the entries with a name and a value after it, both not empty."""
    return (_name_starts(value_ends) < name_ends) & (name_ends + 1 < value_ends)


def _open_texts(text: PropertyText) -> Positions:
    """Return the texts that do not end with a value."""
    filled = np.flatnonzero(text.offsets[:-1] < text.offsets[1:])
    last = text.data[text.offsets[1:][filled] - 1]
    found: Positions = filled[last != _VALUE_END]
    return found


def _invalid_texts(text: PropertyText) -> Mask:
    """Return texts with invalid UTF-8. Each ends in ASCII, so all are valid if their concatenation is."""
    odd = np.zeros(len(text), np.bool_)
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
    offsets = np.searchsorted(value_ends, text.offsets).astype(np.int32)
    return Properties(names, values, offsets, _name_kinds(names, offsets))


def _name_kinds(names: pa.Array, offsets: Offsets) -> _Names:
    if _is_same_in_all(names, offsets):
        return _SameNames(names[: int(offsets[1])].to_pylist())
    encoded = names.dictionary_encode()
    return _MixedNames(index_numbers(encoded.indices), encoded.dictionary.to_pylist())


def _is_same_in_all(names: pa.Array, offsets: Offsets) -> bool:
    """Return whether every message has the names of the first, in the same order, and at least one."""
    messages = len(offsets) - 1
    if not len(names) or not is_repeated(np.diff(offsets)):
        return False
    content, places = content_of(names)
    return is_repeated(np.diff(places).reshape(messages, -1)) and is_repeated(content.reshape(messages, -1))
