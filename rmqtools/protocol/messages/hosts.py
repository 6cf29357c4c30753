"""Addresses as text (``10.0.0.1:10911``, ``[::1]:10911``), and as bytes in stored messages and ids.

    address: 4 or 16 bytes | port: u32

Source of the rule: MessageDecoder, MessageExt.socketAddress2ByteBuffer (Java client).
"""

import ipaddress
import struct
from functools import lru_cache

from rmqtools.errors import ProtocolError

_PORT = struct.Struct(">I")
_MAX_PORT = 0xFFFF
IPV4_HOST_BYTES = 8
IPV6_HOST_BYTES = 20


@lru_cache(maxsize=1024)
def decode_host(data: bytes) -> str:
    """Decode 8 or 20 bytes. Cached, because all messages of a queue have the same few hosts.

    Raises:
        ProtocolError: another length, or a port above 65535.
    """
    if len(data) not in (IPV4_HOST_BYTES, IPV6_HOST_BYTES):
        raise ProtocolError(f"host of {len(data)} bytes")
    (port,) = _PORT.unpack_from(data, len(data) - _PORT.size)
    if port > _MAX_PORT:
        raise ProtocolError(f"host with port {port}")
    address = ipaddress.ip_address(data[: -_PORT.size])
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


@lru_cache(maxsize=1024)
def encode_host(text: str) -> bytes:
    """Encode ``address:port``, with IPv6 addresses in brackets. Host names are not resolved.

    Raises:
        ValueError: not an address, or no port.
    """
    address, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdecimal() or int(port) > _MAX_PORT:
        raise ValueError(f"host {text!r}: want address:port")
    return ipaddress.ip_address(address.removeprefix("[").removesuffix("]")).packed + _PORT.pack(int(port))
