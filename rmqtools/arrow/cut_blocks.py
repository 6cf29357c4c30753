"""Cuts blocks of large messages: copies the bodies to one buffer and everything else to another.

Each block is cut on arrival and then released. A body is copied once, to its place in the record batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rmqtools.arrow.decode import JoinedBlocks
from rmqtools.arrow.spans import Bytes, Positions, number_array
from rmqtools.arrow.stored import BODY_LENGTH_POSITION, HEAD_BYTES, LENGTHS, SHORTEST, PlainMessages
from rmqtools.model.block import CorruptBody, MessageBlock
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.messages.inner_batch import is_inner_batch

_INT: Final = np.dtype(">i4")


@dataclass(frozen=True, slots=True)
class CutBlocks:
    """Messages of several blocks of one topic on one broker, with their bodies apart.

    Attributes:
        data: the messages back to back, each as if it had a body of no bytes.
        starts: where they begin in ``data``.
        bodies: the body of each message, as a binary array.
        queues: the queue of each message.
        max_decompressed_bytes: see :class:`MessageBlock`.
    """

    data: Bytes
    starts: Positions
    bodies: pa.Array
    queues: Sequence[MessageQueue]
    max_decompressed_bytes: int

    @property
    def queue(self) -> MessageQueue:
        """Of the first message."""
        return self.queues[0]

    def body_column(self, plain: PlainMessages) -> pa.Array:
        """See :class:`StoredRows`."""
        return self.bodies if len(plain) == len(self.starts) else self.bodies.take(number_array(plain.rows))

    def decode(self, row: int, corrupt_body: CorruptBody, *, with_bodies: bool = True) -> list[MessageExt]:
        """See :class:`StoredRows`. Puts the message and its body together again."""
        start, body = int(self.starts[row]), self.bodies[row].as_buffer()
        end = int(self.starts[row + 1]) if row + 1 < len(self.starts) else len(self.data)
        head = self.data[start : start + HEAD_BYTES].copy()
        lengths = np.array([end - start + body.size, body.size])
        _write_ints(head, np.array([0, BODY_LENGTH_POSITION]), lengths)
        stored = b"".join((head.data, body, self.data[start + HEAD_BYTES : end].data))
        block = MessageBlock(self.queues[row], stored, [0], 0, self.max_decompressed_bytes)
        return JoinedBlocks([block]).decode(0, corrupt_body, with_bodies=with_bodies)


class BlockCutter:
    """Cuts blocks of one topic on one broker, one after the other.

    Args:
        room: the bytes of all blocks together, at most.
    """

    def __init__(self, room: int) -> None:
        self._bodies = np.empty(room, np.uint8)
        self._filled = 0  # bytes of the bodies
        self._body_sizes: list[int] = []
        self._pieces: list[bytes] = []  # of each message the head, and the bytes after the body
        self._sizes: list[int] = []  # of each message without its body
        self._queues: list[MessageQueue] = []
        self._max_decompressed_bytes = 0

    def __len__(self) -> int:
        return len(self._queues)

    def add(self, block: MessageBlock) -> bool:
        """Cut a block; return False and add nothing if a length does not fit or a message contains others."""
        data = block.buffer
        source = memoryview(block.buffer)
        target = self._bodies.data
        filled = self._filled
        body_sizes: list[int] = []
        pieces: list[bytes] = []
        sizes: list[int] = []
        for begin in block.starts:
            if not 0 <= begin <= len(data) - SHORTEST:
                return False
            size, sys_flag, body_size = LENGTHS.unpack_from(data, begin)
            body, end = begin + HEAD_BYTES, begin + size
            rest = body + body_size
            if body_size < 0 or rest + 3 > end or end > len(data) or is_inner_batch(sys_flag):
                return False
            pieces += (data[begin:body], data[rest:end])
            target[filled : filled + body_size] = source[body:rest]
            filled += body_size
            body_sizes.append(body_size)
            sizes.append(size - body_size)
        self._filled = filled
        self._body_sizes += body_sizes
        self._pieces += pieces
        self._sizes += sizes
        self._queues += [block.queue] * len(sizes)
        self._max_decompressed_bytes = block.max_decompressed_bytes
        return True

    def finish(self) -> CutBlocks:
        """Return the messages. Bodies that fill less than half of the buffer are copied, to release it."""
        bodies = self._bodies[: self._filled]
        if 2 * len(bodies) < len(self._bodies):
            bodies = bodies.copy()
        offsets = np.cumsum([0, *self._body_sizes], dtype=np.int32)
        content = [None, pa.py_buffer(offsets), pa.py_buffer(bodies)]
        sizes = np.array(self._sizes, np.int64)
        starts = np.cumsum(sizes) - sizes
        data = np.frombuffer(bytearray().join(self._pieces), np.uint8)
        _write_ints(data, starts, sizes)
        _write_ints(data, starts + BODY_LENGTH_POSITION, np.zeros_like(sizes))
        return CutBlocks(
            data,
            starts,
            pa.Array.from_buffers(pa.binary(), len(self), content),
            self._queues,
            self._max_decompressed_bytes,
        )


def _write_ints(data: Bytes, positions: Positions, values: npt.NDArray[np.int64]) -> None:
    """Write a big-endian number of four bytes at each position."""
    places = positions[:, None] + np.arange(_INT.itemsize)
    data[places] = values.astype(_INT).view(np.uint8).reshape(places.shape)
