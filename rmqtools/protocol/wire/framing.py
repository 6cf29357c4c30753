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
ROOM_BYTES = 256 * 1024  # the most bytes that one call of the socket may return

_PREFIX = struct.Struct(">II")
_LENGTH_BYTES = 4
_LEAST_ROOM_BYTES = 32 * 1024  # with less, calls of the socket would cost too much
_HEADER_MASK = 0x00FF_FFFF


class Frame(NamedTuple):
    """One frame. ``serializer`` is the format of the header (SerializeType)."""

    serializer: int
    header: bytes
    body: bytes


def encode_frame(serializer: int, header: bytes, body: bytes | memoryview) -> bytes:
    """Make a frame of a header and a body.

    Raises:
        ProtocolError: the header is too long for its 24-bit length.
    """
    if len(header) > _HEADER_MASK:
        raise ProtocolError(f"header of {len(header)} bytes: at most {_HEADER_MASK} fit into a frame")
    body_bytes = body.nbytes if type(body) is memoryview else len(body)
    total = _LENGTH_BYTES + len(header) + body_bytes
    return b"".join((_PREFIX.pack(total, serializer << 24 | len(header)), header, body))


class FrameDecoder:
    """Cuts a byte stream into frames. One decoder per connection; not thread-safe.

    The socket writes into the decoder's own buffer (:meth:`room`, :meth:`advance`), so a body is copied only
    once. Holds at most one incomplete frame: ``max_frame_bytes``, length included, plus 256 KiB.
    """

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._filled = 0
        self._max_frame_bytes = max_frame_bytes
        self._error: ProtocolError | None = None

    @property
    def error(self) -> ProtocolError | None:
        """Why the stream cannot be read further; None while it can."""
        return self._error

    @property
    def is_inside_frame(self) -> bool:
        """Whether a frame has begun and is not complete."""
        return self._filled > 0

    def feed(self, data: bytes | memoryview) -> list[Frame]:
        """Take bytes from elsewhere; as :meth:`advance`."""
        view = memoryview(data).cast("B")
        self.room(len(view))[: len(view)] = view
        return self.advance(len(view))

    def room(self, at_least: int = _LEAST_ROOM_BYTES) -> memoryview:
        """Return the memory for the next bytes: ``at_least`` this many, usually more."""
        if len(self._buffer) - self._filled < at_least:
            self._replace_buffer(max(self._filled + at_least, self._unfinished_bytes(), ROOM_BYTES))
        return memoryview(self._buffer)[self._filled :]

    def advance(self, count: int) -> list[Frame]:
        """Note that ``count`` bytes were written into the room; return the frames that are now complete.

        Frames before an impossible length are still returned; then ``error`` is set.

        Raises:
            ProtocolError: the next length is impossible. The connection must be dropped:
                the stream cannot be realigned.
        """
        if self._error is not None:
            raise self._error
        self._filled += count
        frames, rest = self._cut_frames()
        self._keep(rest)
        if self._error is not None and not frames:
            raise self._error
        return frames

    def _cut_frames(self) -> tuple[list[Frame], int]:
        """Return the complete frames in the buffer, and where the rest begins."""
        frames: list[Frame] = []
        start, size = 0, self._filled
        with memoryview(self._buffer) as view:
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

    def _keep(self, rest: int) -> None:
        """Move the incomplete frame to the front. A buffer made for a large frame is not kept."""
        if self._error is not None:
            self._buffer, self._filled = bytearray(), 0
            return
        left = self._filled - rest
        if rest:
            self._buffer[:left] = self._buffer[rest : self._filled]
            self._filled = left
        if len(self._buffer) > ROOM_BYTES > left:
            self._replace_buffer(ROOM_BYTES)

    def _unfinished_bytes(self) -> int:
        """Return the size of the incomplete frame, plus room for the bytes after it."""
        if self._filled < _PREFIX.size:
            return 0
        total, _ = _PREFIX.unpack_from(self._buffer)
        return int(total) + ROOM_BYTES

    def _replace_buffer(self, size: int) -> None:
        """Use a new buffer: the loop may hold a view of the old one, so that cannot be resized."""
        fresh = bytearray(size)
        fresh[: self._filled] = memoryview(self._buffer)[: self._filled]
        self._buffer = fresh
