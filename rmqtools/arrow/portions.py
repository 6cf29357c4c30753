"""Puts blocks of several ranges together to portions, each of which becomes one record batch."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final, TypeAlias

from rmqtools.arrow.cut_blocks import BlockCutter, CutBlocks
from rmqtools.errors import ProtocolError
from rmqtools.model.block import LARGE_MESSAGE_BYTES, MessageBlock
from rmqtools.model.queue import MessageQueue, QueueRange

BYTES_PER_BATCH: Final = 4 * 1024 * 1024
LARGE_BYTES_PER_BATCH: Final = 8 * 1024 * 1024  # of large messages: their batches have few rows

Read: TypeAlias = tuple[QueueRange, MessageBlock]
"""A range, and a block of it."""
Portion: TypeAlias = Sequence[Read] | CutBlocks
"""Blocks as they were read, or, of large messages whose bodies are wanted, cut."""


async def in_portions(
    found: AsyncGenerator[Read, None], *, max_rows: int, with_bodies: bool
) -> AsyncGenerator[Portion, None]:
    """Yield portions of blocks of one topic on one broker.

    Keeps no reference to a block or portion that was passed on.

    Args:
        found: the blocks.
        max_rows: rows of a portion, at most, unless its first block has more.
        with_bodies: whether bodies are wanted.

    Raises:
        ProtocolError: of ``found``, after the blocks that came before it.
    """
    gathered = _Gathered(max_rows, with_bodies=with_bodies)
    try:
        async with aclosing(found):
            async for read in found:
                while gathered and not gathered.takes(read[1]):
                    yield gathered.hand_out()
                gathered.add(read)
                del read
                while gathered and gathered.is_full:
                    yield gathered.hand_out()
    except ProtocolError:  # the end of an answer is unreadable; these are its first messages
        while gathered:
            yield gathered.hand_out()
        raise
    while gathered:
        yield gathered.hand_out()


class _Gathered:
    """Blocks to be decoded together, because each batch has a fixed cost here and 2 ms in Spark."""

    def __init__(self, max_rows: int, *, with_bodies: bool) -> None:
        self._max_rows = max_rows
        self._with_bodies = with_bodies
        self._cutter: BlockCutter | None = None
        self._reads: list[Read] = []  # those that are not cut; they come after those that are
        self._cannot_cut = False  # a block that cannot be cut ends the portion
        self._queue: MessageQueue | None = None
        self._rows = self._size = 0

    def __bool__(self) -> bool:
        return bool(self._cutter or self._reads)

    @property
    def is_full(self) -> bool:
        return self._cannot_cut or self._rows >= self._max_rows or self._size >= self._most_bytes

    @property
    def _most_bytes(self) -> int:
        return BYTES_PER_BATCH if self._cutter is None else LARGE_BYTES_PER_BATCH

    def takes(self, block: MessageBlock) -> bool:
        """Return whether the block fits too."""
        rows, size = self._rows + len(block), self._size + len(block.buffer)
        return rows <= self._max_rows and size <= self._most_bytes and self._is_alike(block.queue)

    def add(self, read: Read) -> None:
        _, block = read
        self._queue = block.queue
        self._reads.append(read)
        self._rows += len(block)
        self._size += len(block.buffer)
        if self._cutter is None and self._with_bodies and self._size >= self._rows * LARGE_MESSAGE_BYTES:
            self._cutter = BlockCutter(max(LARGE_BYTES_PER_BATCH, self._size))
        if self._cutter is not None:
            self._cut(self._cutter)

    def hand_out(self) -> Portion:
        """Return the blocks that are cut, else the others."""
        portion: Portion
        if self._cutter:
            portion = self._cutter.finish()
        else:
            portion, self._reads = self._reads, []
        self._cutter = None
        if not self._reads:
            self._rows = self._size = 0
            self._cannot_cut = False
        return portion

    def _cut(self, cutter: BlockCutter) -> None:
        while self._reads:
            if not cutter.add(self._reads[0][1]):
                self._cannot_cut = True
                return
            del self._reads[0]

    def _is_alike(self, queue: MessageQueue) -> bool:
        one = self._queue
        return one is None or (one.topic, one.broker_name) == (queue.topic, queue.broker_name)
