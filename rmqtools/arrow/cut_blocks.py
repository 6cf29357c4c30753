"""Large messages in two parts: their bodies back to back in one buffer, all the rest in another.

A block is cut when it comes, and not kept. So a body is copied once, to where its record batch has it, and
until then takes no memory twice.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rmqtools.arrow.decode import JoinedBlocks
from rmqtools.arrow.spans import Bytes, Positions, number_array
from rmqtools.arrow.stored import BODY_LENGTH_POSITION, HEAD_BYTES, SHORTEST, PlainMessages
from rmqtools.model.block import CorruptBody, MessageBlock
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.messages.inner_batch import is_inner_batch

_LENGTHS: Final = struct.Struct(">i32xi44xi")  # of a stored message: total size, sys flag, body length
_INT: Final = np.dtype(">i4")


@dataclass(frozen=True, slots=True)
class CutBlocks:
    """Messages of several blocks of one topic on one broker, in two parts; used like one block.

    Attributes:
        data: the messages back to back, each as if it had a body of no bytes.
        starts: where they begin in ``data``.
        bodies: what each of them lacks, a binary array.
        queues: the queue of each.
        max_decompressed_bytes: as of the blocks.
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
        """The bodies of the plain messages."""
        return self.bodies if len(plain) == len(self.starts) else self.bodies.take(number_array(plain.rows))

    def decode(self, row: int, corrupt_body: CorruptBody, *, with_bodies: bool = True) -> list[MessageExt]:
        """As of :class:`JoinedBlocks`; a message that is not plain is put together again."""
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
        self._body_ends = [0]
        self._pieces: list[bytes] = []  # of each message its head and what follows its body
        self._ends = [0]  # of these
        self._queues: list[MessageQueue] = []
        self._max_decompressed_bytes = 0

    def __len__(self) -> int:
        return len(self._queues)

    def add(self, block: MessageBlock) -> bool:
        """Whether the block could be cut: every length fits, and no message contains others."""
        data, end_of_data = block.buffer, len(block.buffer)
        pieces: list[bytes] = []
        cuts: list[tuple[int, int, int]] = []
        for begin in block.starts:
            if not 0 <= begin <= end_of_data - SHORTEST:
                return False
            size, sys_flag, length = _LENGTHS.unpack_from(data, begin)
            body, end = begin + HEAD_BYTES, begin + size
            rest = body + length
            if length < 0 or rest + 3 > end or end > end_of_data or is_inner_batch(sys_flag):
                return False
            pieces += (data[begin:body], data[rest:end])
            cuts.append((body, rest, size - length))
        self._pieces += pieces
        self._queues += [block.queue] * len(cuts)
        self._max_decompressed_bytes = block.max_decompressed_bytes
        source, target = memoryview(data), self._bodies.data
        at, end = self._body_ends[-1], self._ends[-1]
        for body, rest, size in cuts:
            begin, at = at, at + rest - body
            target[begin:at] = source[body:rest]
            self._body_ends.append(at)
            end += size
            self._ends.append(end)
        return True

    def finish(self) -> CutBlocks:
        """Return what was cut. Little in a large buffer is copied: no batch holds much more than it has."""
        bodies = self._bodies[: self._body_ends[-1]]
        if 2 * len(bodies) < len(self._bodies):
            bodies = bodies.copy()
        content = [None, pa.py_buffer(np.array(self._body_ends, np.int32)), pa.py_buffer(bodies)]
        ends = np.array(self._ends, np.int64)
        data = np.frombuffer(bytearray().join(self._pieces), np.uint8)
        _write_ints(data, ends[:-1], np.diff(ends))
        _write_ints(data, ends[:-1] + BODY_LENGTH_POSITION, np.zeros(len(self), np.int64))
        return CutBlocks(
            data,
            ends[:-1],
            pa.Array.from_buffers(pa.binary(), len(self), content),
            self._queues,
            self._max_decompressed_bytes,
        )


def _write_ints(data: Bytes, positions: Positions, values: npt.NDArray[np.int64]) -> None:
    """Write a big-endian number of four bytes at each position."""
    places = positions[:, None] + np.arange(_INT.itemsize)
    data[places] = values.astype(_INT).view(np.uint8).reshape(places.shape)
