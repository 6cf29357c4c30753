"""Compressed bodies: zlib, LZ4 frame, zstd; which one is in bits 8-10 of a message's sys flag.

Source of the rule: CompressionType, CompressorFactory, MessageSysFlag.getCompressionType (Java client).
"""

import zlib
from collections.abc import Callable, Mapping
from enum import IntEnum

import lz4.frame
import zstandard

from rmqtools.errors import ProtocolError

MAX_BODY_BYTES = 128 * 1024 * 1024  # far above any broker's maxMessageSize; upstream has no limit
DEFAULT_LEVEL = 5  # upstream compressLevel

_TYPE_SHIFT = 8
_TYPE_MASK = 7
_ZSTD_PIECE_BYTES = 1024


class CompressionType(IntEnum):
    """How a body is compressed; the numbers are those of the sys flag."""

    LZ4 = 1
    ZSTD = 2
    ZLIB = 3

    @classmethod
    def of_sys_flag(cls, sys_flag: int) -> "CompressionType":
        """The type bits of a message's sys flag; 0 is zlib too, from the time before there were types.

        Raises:
            ProtocolError: a type nobody knows.
        """
        number = sys_flag >> _TYPE_SHIFT & _TYPE_MASK
        if number > cls.ZLIB:
            raise ProtocolError(f"unknown compression type {number} in sys flag {sys_flag:#x}")
        return cls(number or cls.ZLIB)

    @property
    def sys_flag(self) -> int:
        """The type bits as a sys flag carries them, without the compressed bit."""
        return self.value << _TYPE_SHIFT


def compress(kind: CompressionType, data: bytes, level: int = DEFAULT_LEVEL) -> bytes:
    """Compress a body; ``level`` means what it means to the kind."""
    if kind is CompressionType.ZLIB:
        return zlib.compress(data, level)
    if kind is CompressionType.LZ4:
        return bytes(lz4.frame.compress(data, compression_level=level, block_linked=False))
    return zstandard.ZstdCompressor(level=level).compress(data)


def decompress(kind: CompressionType, data: bytes | memoryview, *, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Decompress a body of at most ``max_bytes``; memory stays within that limit.

    Raises:
        ProtocolError: not this kind of data, cut off, or larger than the limit.
    """
    try:
        plain = _DECOMPRESSORS[kind](data, max_bytes + 1)
    except (zlib.error, zstandard.ZstdError, RuntimeError, EOFError) as error:
        raise ProtocolError(
            f"{kind.name} body of {len(data)} bytes cannot be decompressed: {error}"
        ) from error
    if len(plain) > max_bytes:
        raise ProtocolError(f"{kind.name} body of {len(data)} bytes is larger than {max_bytes} bytes")
    return plain


def _decompress_zlib(data: bytes | memoryview, limit: int) -> bytes:
    decoder = zlib.decompressobj()
    plain = decoder.decompress(data, limit)
    if not decoder.eof and len(plain) < limit:
        raise EOFError("it is cut off")
    return plain


def _decompress_lz4(data: bytes | memoryview, limit: int) -> bytes:
    decoder = lz4.frame.LZ4FrameDecompressor()
    plain: bytes = decoder.decompress(data, max_length=limit)
    if not decoder.eof and len(plain) < limit:
        raise EOFError("it is cut off")
    return plain


def _decompress_zstd(data: bytes | memoryview, limit: int) -> bytes:
    """Fed in small pieces: one piece grows to _ZSTD_PIECE_BYTES * 32 KiB at most, so the limit holds."""
    decoder = zstandard.ZstdDecompressor().decompressobj()
    plain = bytearray()
    for start in range(0, len(data), _ZSTD_PIECE_BYTES):
        plain += decoder.decompress(data[start : start + _ZSTD_PIECE_BYTES])
        if decoder.eof or len(plain) >= limit:
            return bytes(plain)
    raise EOFError("it is cut off")


_DECOMPRESSORS: Mapping[CompressionType, Callable[[bytes | memoryview, int], bytes]] = {
    CompressionType.ZLIB: _decompress_zlib,
    CompressionType.LZ4: _decompress_lz4,
    CompressionType.ZSTD: _decompress_zstd,
}
