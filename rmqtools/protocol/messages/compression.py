"""Compressed bodies: zlib, LZ4 frame, zstd. Bits 8-10 of a message's sys flag name the type.

Source of the rule: CompressionType, CompressorFactory, MessageSysFlag.getCompressionType (Java client).

Java's LZ4 reader accepts independent blocks only: use ``block_linked=False``, or official consumers silently
drop bodies above 64 KB.
"""

import sys
import zlib
from collections.abc import Callable, Mapping
from enum import IntEnum

import lz4.frame
import zstandard

from rmqtools.errors import ProtocolError
from rmqtools.model.block import MAX_DECOMPRESSED_BYTES

DEFAULT_LEVEL = 5  # upstream compressLevel

_TYPE_SHIFT = 8
_TYPE_MASK = 7
_LZ4_GROWTH = 256  # a byte of a block's length stands for 255 bytes
_ZSTD_GROWTH = 32 * 1024  # a block of 4 bytes repeats one byte 128 KiB times
_LEAST_PIECE_BYTES, _LARGEST_PIECE_BYTES = 32, 1024


class OversizeError(ProtocolError):
    """A body that is larger than ``max_bytes`` when decompressed.

    Readers of messages turn it into :class:`rmqtools.errors.BodyTooLargeError`, which also names the message.
    """

    def __init__(self, kind: "CompressionType", stored_bytes: int, max_bytes: int) -> None:
        super().__init__(f"{kind.name} body of {stored_bytes} bytes is larger than {max_bytes} bytes")
        self.max_bytes = max_bytes


class CompressionType(IntEnum):
    """Compression of a body; the numbers are those of the sys flag."""

    LZ4 = 1
    ZSTD = 2
    ZLIB = 3

    @classmethod
    def of_sys_flag(cls, sys_flag: int) -> "CompressionType":
        """Return the type of a message's sys flag; 0 is zlib too, as sent by clients without types.

        Raises:
            ProtocolError: an unknown type.
        """
        number = sys_flag >> _TYPE_SHIFT & _TYPE_MASK
        if number > cls.ZLIB:
            raise ProtocolError(f"unknown compression type {number} in sys flag {sys_flag:#x}")
        return cls(number or cls.ZLIB)

    @property
    def sys_flag(self) -> int:
        """The type bits of a sys flag, without the compressed bit."""
        return self.value << _TYPE_SHIFT


def compress(kind: CompressionType, data: bytes, level: int = DEFAULT_LEVEL) -> bytes:
    """Compress a body; the meaning of ``level`` depends on the kind."""
    if kind is CompressionType.ZLIB:
        return zlib.compress(data, level)
    if kind is CompressionType.LZ4:
        return bytes(lz4.frame.compress(data, compression_level=level, block_linked=False))
    return zstandard.ZstdCompressor(level=level).compress(data)


def decompress(
    kind: CompressionType, data: bytes | memoryview, *, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """Decompress a body of at most ``max_bytes``, with memory within that limit.

    Raises:
        OversizeError: more than the limit.
        ProtocolError: other data, or incomplete data.
    """
    if isinstance(data, memoryview):
        data = data.cast("B")  # its items may be wider
    try:
        plain = _DECOMPRESSORS[kind](data, min(max_bytes + 1, sys.maxsize))
    except (zlib.error, zstandard.ZstdError, RuntimeError, EOFError) as error:
        raise ProtocolError(
            f"{kind.name} body of {len(data)} bytes cannot be decompressed: {error}"
        ) from error
    if len(plain) > max_bytes:
        raise OversizeError(kind, len(data), max_bytes)
    return plain


def _decompress_zlib(data: bytes | memoryview, limit: int) -> bytes:
    decoder = zlib.decompressobj()
    plain = decoder.decompress(data, limit)
    if not decoder.eof and len(plain) < limit:
        raise EOFError("it is cut off")
    return plain


def _decompress_lz4(data: bytes | memoryview, limit: int) -> bytes:
    decoder = lz4.frame.LZ4FrameDecompressor()
    room = min(limit, _LZ4_GROWTH * len(data))  # the decoder takes so much memory at once
    plain: bytes = decoder.decompress(data, max_length=room)
    if not decoder.eof and len(plain) < limit:
        raise EOFError("it is cut off")
    return plain


def _decompress_zstd(data: bytes | memoryview, limit: int) -> bytes:
    """Decompress pieces that cannot grow beyond the limit: they get smaller as it comes nearer."""
    decoder = zstandard.ZstdDecompressor().decompressobj()
    plain = bytearray()
    start = 0
    while start < len(data):
        room = (limit - len(plain)) // _ZSTD_GROWTH
        end = start + max(_LEAST_PIECE_BYTES, min(room, _LARGEST_PIECE_BYTES))
        plain += decoder.decompress(data[start:end])
        if decoder.eof or len(plain) >= limit:
            return bytes(plain)
        start = end
    raise EOFError("it is cut off")


_DECOMPRESSORS: Mapping[CompressionType, Callable[[bytes | memoryview, int], bytes]] = {
    CompressionType.ZLIB: _decompress_zlib,
    CompressionType.LZ4: _decompress_lz4,
    CompressionType.ZSTD: _decompress_zstd,
}
