"""Makes texts of bytes (hosts, message ids), and validates UTF-8."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rmqtools.arrow.spans import Bytes, Mask, number_array, text_array

_HEX_DIGITS: Final = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_OFFSET_ID_FIELDS: Final = ("store_host", "commit_log_offset")


def is_utf8(data: Bytes) -> bool:
    """Return whether all of ``data`` is valid UTF-8."""
    try:
        str(data.data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def invalid_texts(column: pa.Array) -> Mask:
    """Return the values that are not UTF-8. Checks single values only if there are any."""
    raw = column.cast(pa.binary())
    found = np.zeros(len(column), np.bool_)
    try:
        raw.cast(pa.string())
    except pa.ArrowInvalid:
        values = (np.frombuffer(value or b"", np.uint8) for value in raw.to_pylist())
        found[:] = [not is_utf8(value) for value in values]
    return found


def host_column(head: npt.NDArray[Any]) -> pa.Array:
    """Return ``a.b.c.d:port`` of every born host; each distinct host is formatted once."""
    hosts = number_array(head["born_host"].astype(np.uint64)).dictionary_encode()
    texts = text_array([_host_text(host) for host in hosts.dictionary.to_pylist()])
    return texts.take(hosts.indices)


def _host_text(host: int) -> str:
    address, port = host >> 32, host & 0xFFFF
    return f"{address >> 24}.{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}:{port}"


def offset_id_column(head: npt.NDArray[Any]) -> pa.Array:
    """Return every message's offset id: store address, port and commit log offset in upper hex.

    Source of the rule: MessageDecoder.createMessageId (Java client).
    """
    raw = np.concatenate([_bytes_of(head[name]) for name in _OFFSET_ID_FIELDS], axis=1)
    digits = np.empty((len(head), 2 * raw.shape[1]), np.uint8)
    digits[:, 0::2] = _HEX_DIGITS[raw >> 4]
    digits[:, 1::2] = _HEX_DIGITS[raw & 15]
    offsets = np.arange(len(head) + 1, dtype=np.int32) * np.int32(digits.shape[1])
    return pa.Array.from_buffers(pa.string(), len(head), [None, pa.py_buffer(offsets), pa.py_buffer(digits)])


def _bytes_of(field: npt.NDArray[Any]) -> Bytes:
    """Return a field of fixed width as a row of bytes per message."""
    return np.ascontiguousarray(field).view(np.uint8).reshape(len(field), field.dtype.itemsize)
