"""Reads the ids that clients make for their messages (``protocol.messages.message_id`` draws them)."""

import ipaddress
import struct
from typing import NamedTuple

_UNIQUE_FIXED = struct.Struct(">HI")
_UNIQUE_MOVING = struct.Struct(">IH")


class UniqueId(NamedTuple):
    """What a client's message id says."""

    ip: str
    pid: int
    loader_hash: int
    millis_since_month_start: int
    counter: int


def parse_unique_id(text: str) -> UniqueId:
    """Read a client's message id; ``loader_hash`` is signed, as Java's hash codes are."""
    data = bytes.fromhex(text)
    address = data[: -_UNIQUE_FIXED.size - _UNIQUE_MOVING.size]
    pid, loader_hash = _UNIQUE_FIXED.unpack_from(data, len(address))
    millis, counter = _UNIQUE_MOVING.unpack_from(data, len(data) - _UNIQUE_MOVING.size)
    signed_hash = loader_hash - (loader_hash >> 31 << 32)
    return UniqueId(str(ipaddress.ip_address(address)), pid, signed_hash, millis, counter)
