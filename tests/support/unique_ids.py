"""Reads the ids that clients make for their messages (``protocol.messages.message_id`` draws them)."""

import ipaddress
import struct
from typing import NamedTuple

_UNIQUE_FIXED = struct.Struct(">HI")
_UNIQUE_MOVING = struct.Struct(">IH")
_MASK_16, _MASK_32 = 0xFFFF, 0xFFFF_FFFF


class UniqueId(NamedTuple):
    """What a client's message id says."""

    ip: str
    pid: int
    loader_hash: int
    millis_since_month_start: int
    counter: int


def format_unique_id(parts: UniqueId) -> str:
    """Write a client's message id; numbers are cut to their bits."""
    fixed = _UNIQUE_FIXED.pack(parts.pid & _MASK_16, parts.loader_hash & _MASK_32)
    moving = _UNIQUE_MOVING.pack(parts.millis_since_month_start & _MASK_32, parts.counter & _MASK_16)
    return (ipaddress.ip_address(parts.ip).packed + fixed + moving).hex().upper()


def parse_unique_id(text: str) -> UniqueId:
    """Read a client's message id; ``loader_hash`` is signed, as Java's hash codes are."""
    data = bytes.fromhex(text)
    address = data[: -_UNIQUE_FIXED.size - _UNIQUE_MOVING.size]
    pid, loader_hash = _UNIQUE_FIXED.unpack_from(data, len(address))
    millis, counter = _UNIQUE_MOVING.unpack_from(data, len(data) - _UNIQUE_MOVING.size)
    signed_hash = loader_hash - (loader_hash >> 31 << 32)
    return UniqueId(str(ipaddress.ip_address(address)), pid, signed_hash, millis, counter)
