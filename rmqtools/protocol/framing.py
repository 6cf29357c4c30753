"""Length-prefixed frames of the remoting protocol: bytes in, frames out, no I/O.

A frame on the wire (big-endian):

    total:u32 | serializer:u8, header_length:u24 | header | body

``total`` counts everything after itself.
Source of the rule: RemotingCommand.decode and getHeaderLength, NettyDecoder (Java client).
"""

import struct
from typing import NamedTuple

from rmqtools.errors import ProtocolError

MAX_FRAME_BYTES = 16 * 1024 * 1024  # upstream com.rocketmq.remoting.frameMaxLength

_PREFIX = struct.Struct(">II")
_LENGTH_BYTES = 4
_HEADER_MASK = 0x00FF_FFFF


class Frame(NamedTuple):
    """One frame. ``serializer`` says how the header is written (SerializeType)."""

    serializer: int
    header: bytes
    body: bytes


def encode_frame(serializer: int, header: bytes, body: bytes) -> bytes:
    """Put a header and a body behind their lengths.

    Raises:
        ProtocolError: the header is longer than its 24-bit length can say.
    """
    if len(header) > _HEADER_MASK:
        raise ProtocolError(f"header of {len(header)} bytes: at most {_HEADER_MASK} fit into a frame")
    total = _LENGTH_BYTES + len(header) + len(body)
    return b"".join((_PREFIX.pack(total, serializer << 24 | len(header)), header, body))


class FrameDecoder:
    """Cut a byte stream into frames. One decoder per connection; not thread-safe.

    Holds at most one unfinished frame: ``max_frame_bytes``, length included, plus what one ``feed`` brings.
    """

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._max_frame_bytes = max_frame_bytes
        self._error: ProtocolError | None = None

    @property
    def error(self) -> ProtocolError | None:
        """Why the stream cannot be read on; None while it can."""
        return self._error

    def feed(self, data: bytes) -> list[Frame]:
        """Take what the socket gave; return the frames that are now whole.

        Frames in front of an impossible length are still returned; from then on ``error`` is set.

        Raises:
            ProtocolError: the next length is impossible. The connection must be dropped:
                the stream cannot be realigned.
        """
        if self._error is not None:
            raise self._error
        buffer: bytes | bytearray = data
        if self._buffer:
            self._buffer += data
            buffer = self._buffer
        frames, rest = self._cut_frames(buffer)
        self._keep(buffer, rest)
        if self._error is not None and not frames:
            raise self._error
        return frames

    def _cut_frames(self, buffer: bytes | bytearray) -> tuple[list[Frame], int]:
        """Every whole frame at the front of ``buffer``, and where the rest begins."""
        frames: list[Frame] = []
        start, size = 0, len(buffer)
        with memoryview(buffer) as view:
            while size - start >= _PREFIX.size:
                total, mark = _PREFIX.unpack_from(view, start)
                header_start = start + _PREFIX.size
                body_start = header_start + (mark & _HEADER_MASK)
                end = start + _LENGTH_BYTES + total
                if end - start > self._max_frame_bytes or body_start > end:
                    self._error = ProtocolError(f"impossible frame: total={total}, mark={mark:#010x}")
                    break
                if end > size:
                    break
                frames.append(
                    Frame(mark >> 24, bytes(view[header_start:body_start]), bytes(view[body_start:end]))
                )
                start = end
        return frames, start

    def _keep(self, buffer: bytes | bytearray, rest: int) -> None:
        if self._error is not None:
            self._buffer = bytearray()
        elif buffer is self._buffer:
            del self._buffer[:rest]
        elif rest < len(buffer):
            self._buffer += memoryview(buffer)[rest:]
