"""Length-prefixed frames of the remoting protocol: bytes in, frames out, no I/O.

A frame on the wire (big-endian):

    total:u32 | serializer:u8, header_length:u24 | header | body

``total`` counts everything after itself.
Source of the rule: RemotingCommand.decode and getHeaderLength, NettyDecoder (Java client).

- The socket writes into the buffer of ``FrameDecoder``. Replace that buffer, never resize it: the loop still
  holds a view.
- The body of a frame above 256 KiB is received into memory of its own and handed on without a copy, once
  nobody else holds a view of that memory. uvloop holds one during ``buffer_updated``, so such a frame is
  taken in the loop's next turn.
"""

import struct
from io import BytesIO
from typing import NamedTuple

from rmqtools.errors import ProtocolError

MAX_FRAME_BYTES = 16 * 1024 * 1024  # upstream com.rocketmq.remoting.frameMaxLength
ROOM_BYTES = 256 * 1024  # most bytes that one socket call returns

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

    The socket writes into the decoder's own memory (:meth:`room`, :meth:`advance`). A body is copied once out
    of it; that of a frame larger than ``ROOM_BYTES`` has memory of its own and is not copied at all. Holds at
    most one incomplete frame: ``max_frame_bytes``, length included, plus 256 KiB.
    """

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._filled = 0
        self._large: _LargeFrame | None = None  # then the buffer is empty
        self._ready: list[Frame] = []
        self._max_frame_bytes = max_frame_bytes
        self._error: ProtocolError | None = None

    @property
    def error(self) -> ProtocolError | None:
        """Error that stops the stream; None while it can be read."""
        return self._error

    @property
    def is_inside_frame(self) -> bool:
        """True if a frame has begun and is not complete."""
        return self._filled > 0 or (self._large is not None and not self._large.is_complete)

    def may_be_whole(self, count: int) -> bool:
        """Return whether the next ``count`` bytes may be one whole frame: none has begun, and it fits."""
        if self._filled or self._large is not None or self._error is not None:
            return False
        return _PREFIX.size <= count <= self._max_frame_bytes

    @property
    def is_held(self) -> bool:
        """True if a complete frame waits until the caller of :meth:`room` has released that memory.

        The next call of :meth:`room`, :meth:`advance` or :meth:`collect` then completes it. Only uvloop
        holds the memory during ``buffer_updated``.
        """
        return self._large is not None and self._large.is_complete

    def feed(self, data: bytes | memoryview) -> list[Frame]:
        """Take bytes from elsewhere; as :meth:`advance`."""
        if type(data) is bytes and (whole := self._whole(data)) is not None:
            return [whole]
        view, frames = memoryview(data).cast("B"), self.advance(0)
        while view and self._error is None:
            room = self.room()
            count = min(len(room), len(view))
            room[:count] = view[:count]
            try:
                frames += self.advance(count)
            except ProtocolError:
                if not frames:
                    raise
            view = view[count:]
        return frames

    def room(self) -> memoryview:
        """Return the memory for the next bytes: up to the end of a large frame, else 32 KiB or more."""
        if self._large is not None:
            self._complete_large()
        if self._large is not None:
            return self._large.room()
        if len(self._buffer) - self._filled < _LEAST_ROOM_BYTES:
            self._replace_buffer(max(self._filled + _LEAST_ROOM_BYTES, self._unfinished_bytes(), ROOM_BYTES))
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
        if self._large is not None:
            self._large.advance(count)
            return self.collect()
        self._filled += count
        frames, rest = self._cut_frames()
        self._keep(rest)
        if self._ready:
            frames, self._ready = self._ready + frames, []
        if self._error is not None and not frames:
            raise self._error
        return frames

    def collect(self) -> list[Frame]:
        """Return the frames that are complete, after :attr:`is_held`."""
        self._complete_large()
        frames, self._ready = self._ready, []
        return frames

    def drop_unfinished(self) -> None:
        """Release the memory of an unfinished frame, because no more bytes will come.

        Python 3.14 warns of a ``BytesIO`` that the garbage collector finds with views of it.
        """
        if self._large is not None:
            self._large.release()

    def _whole(self, data: bytes) -> Frame | None:
        """Return the one frame that ``data`` is, if nothing came before it: nearly every answer to a send."""
        if not self.may_be_whole(len(data)):
            return None
        total, mark = _PREFIX.unpack_from(data)
        body_start = _PREFIX.size + (mark & _HEADER_MASK)
        if total + _LENGTH_BYTES != len(data) or body_start > len(data):
            return None
        return Frame(mark >> 24, data[_PREFIX.size : body_start], data[body_start:])

    def _complete_large(self) -> None:
        if self._large is not None and (frame := self._large.take()) is not None:
            self._large = None
            self._ready.append(frame)

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
                    if end - start > ROOM_BYTES and body_start <= size:
                        header, begun = bytes(view[header_start:body_start]), view[body_start:size]
                        self._large = _LargeFrame(mark >> 24, header, end - body_start, begun)
                        start = size
                    break
                frames.append(
                    Frame(mark >> 24, bytes(view[header_start:body_start]), bytes(view[body_start:end]))
                )
                start = end
        return frames, start

    def _keep(self, rest: int) -> None:
        """Move the incomplete frame to the front. A buffer made for a large header is not kept."""
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


class _LargeFrame:
    """A frame whose body is received into its own memory.

    ``BytesIO`` releases its content without a copy if nobody else holds a view of it.
    """

    def __init__(self, serializer: int, header: bytes, body_bytes: int, begun: memoryview) -> None:
        self._serializer = serializer
        self._header = header
        self._body = BytesIO(bytes(body_bytes))
        self._view = self._room = self._body.getbuffer()
        self._view[: len(begun)] = begun
        self._missing = body_bytes - len(begun)

    @property
    def is_complete(self) -> bool:
        return self._missing == 0

    def room(self) -> memoryview:
        self._room = self._view[len(self._view) - self._missing :]
        return self._room

    def advance(self, count: int) -> None:
        self._missing -= count

    def take(self) -> Frame | None:
        """Return the frame; None if it is incomplete, or the last room is still in use."""
        if self._missing or not self.release():
            return None
        return Frame(self._serializer, self._header, self._body.getvalue())

    def release(self) -> bool:
        """Release the views of the body; return False while its reader still holds one."""
        try:
            self._room.release()
            self._view.release()
        except BufferError:
            return False
        return True
