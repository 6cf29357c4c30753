"""Ranges of queues as record batches."""

from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from contextlib import aclosing
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow.decode import JoinedBlocks, decode_block, decode_parts
from rmqtools.arrow.in_turn import in_turn
from rmqtools.arrow.schema import MESSAGE_SCHEMA, select_columns
from rmqtools.model.block import MessageBlock
from rmqtools.model.queue import QueueRange

if TYPE_CHECKING:
    from rmqtools.sync import Client

ROWS_PER_BATCH: Final = 4096  # from 1000 on the price of a row is flat, decoding and in Spark
BYTES_PER_BATCH: Final = 3 * 1024 * 1024
_GROWN_BYTES: Final = 2 * 1024 * 1024  # of decompressed bodies together: they may grow a thousandfold
_LARGEST_BATCH_BYTES: Final = 16 * 1024 * 1024  # of what came out of batches stored as one message
_RANGES_AT_ONCE: Final = 8  # each holds a batch

_Read: TypeAlias = tuple[QueueRange, MessageBlock]
"""A range, and a block of it."""


def read_range(
    client: "Client",
    range_: QueueRange,
    *,
    rows_per_batch: int = ROWS_PER_BATCH,
    schema: pa.Schema = MESSAGE_SCHEMA,
    tags: Collection[str] = (),
    sql: str | None = None,
    fail_on_data_loss: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range, by queue offset, as batches of ``schema``.

    A batch has ``rows_per_batch`` rows or a little more, however few a pull brings; fewer only where the
    messages are large (some 3 MiB as stored, or 2 MiB decompressed), the range ends, or brokers let other
    tags through. Offsets without a message (filtered, compacted, transactions) are passed over.

    Args:
        client: who reads.
        range_: which offsets of which queue.
        rows_per_batch: see above.
        schema: the columns, of :func:`message_schema` or :func:`select_columns`.
        tags: only messages with one of these; none: all.
        sql: only messages whose properties fulfil this SQL92 condition.
        fail_on_data_loss: see :meth:`rmqtools.Client.read_blocks`.

    Raises:
        ConfigError: both ``tags`` and ``sql``.
        DataLossError: a part of the range is not stored, or no longer; no row after it was given.
        RemotingError: the broker did not answer.
        ProtocolError: a message that cannot be decoded; the text names it.
    """
    return read_ranges(
        client,
        (range_,),
        rows_per_batch=rows_per_batch,
        schema=schema,
        tags=tags,
        sql=sql,
        fail_on_data_loss=fail_on_data_loss,
    )


def read_ranges(
    client: "Client",
    ranges: Sequence[QueueRange],
    *,
    rows_per_batch: int = ROWS_PER_BATCH,
    schema: pa.Schema = MESSAGE_SCHEMA,
    tags: Collection[str] = (),
    sql: str | None = None,
    fail_on_data_loss: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of several ranges, one range after the other; each as :func:`read_range` does.

    Small ranges are read at once, as many as make ``rows_per_batch`` messages together but 8 at most; those
    of one topic and broker come as one batch.

    Args:
        client: who reads.
        ranges: which offsets of which queues.
        rows_per_batch: see :func:`read_range`, as for the rest, and for the errors.
        schema: the columns.
        tags: only messages with one of these.
        sql: only messages whose properties fulfil this condition.
        fail_on_data_loss: see :meth:`rmqtools.Client.read_blocks`.
    """

    def blocks_of(range_: QueueRange) -> AsyncGenerator[MessageBlock, None]:
        return client.asynchronous.read_blocks(
            range_,
            max_messages=rows_per_batch,
            max_bytes=BYTES_PER_BATCH,
            tags=tags,
            sql=sql,
            fail_on_data_loss=fail_on_data_loss,
        )

    weighed = [(range_, len(range_), blocks_of(range_)) for range_ in ranges]
    found = in_turn(weighed, max_weight=rows_per_batch, at_once=_RANGES_AT_ONCE)
    portions = _portions(found, rows_per_batch)
    return client.iterate(_batches(portions, schema, pa.array(sorted(tags), pa.string())))


class _Portion:
    """Blocks to be decoded together: a batch has a fixed price here, and one of 2 ms in Spark."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._reads: list[_Read] = []
        self._rows = self._size = 0

    def __len__(self) -> int:
        return len(self._reads)

    @property
    def is_full(self) -> bool:
        return self._rows >= self._max_rows or self._size >= BYTES_PER_BATCH

    def takes(self, block: MessageBlock) -> bool:
        """Whether the block still fits."""
        if not self._reads:
            return True
        rows, size = self._rows + len(block), self._size + len(block.buffer)
        _, first = self._reads[0]
        return rows <= self._max_rows and size <= BYTES_PER_BATCH and _is_alike(first, block)

    def add(self, read: _Read) -> None:
        self._reads.append(read)
        self._rows += len(read[1])
        self._size += len(read[1].buffer)

    def hand_out(self) -> list[_Read]:
        """What is in it; it is empty then."""
        reads, self._reads = self._reads, []
        self._rows = self._size = 0
        return reads


async def _portions(found: AsyncGenerator[_Read, None], max_rows: int) -> AsyncGenerator[list[_Read], None]:
    portion = _Portion(max_rows)
    async with aclosing(found):
        async for read in found:
            if not portion.takes(read[1]):
                yield portion.hand_out()
            portion.add(read)
            del read  # see _batches
            if portion.is_full:
                yield portion.hand_out()
    if portion:
        yield portion.hand_out()


def _is_alike(first: MessageBlock, block: MessageBlock) -> bool:
    one, other = first.queue, block.queue
    return (one.topic, one.broker_name) == (other.topic, other.broker_name)


async def _batches(
    portions: AsyncGenerator[list[_Read], None], schema: pa.Schema, wanted: pa.StringArray
) -> AsyncGenerator[pa.RecordBatch, None]:
    """Decode on the loop: on the caller's thread the loop and it would wait for each other all the time.

    Nothing here keeps a block or a batch that has been handed on: the memory of one is used for the next
    while it is still in the processor's cache, and no page of it is new.
    """
    async with aclosing(portions):
        async for portion in portions:
            for batch in _decode_portion(portion, schema, wanted):
                yield batch
                del batch
            del portion


def _decode_portion(
    portion: Sequence[_Read], schema: pa.Schema, wanted: pa.StringArray
) -> Iterator[pa.RecordBatch]:
    decoded = _with_columns(schema, ["queueOffset", "tags"] if len(wanted) else ["queueOffset"])
    for batch in _decode(portion, decoded):
        if len(wanted):  # brokers compare hash codes, so others come through
            batch = batch.filter(pc.is_in(batch.column("tags"), value_set=wanted))
        yield from _split_large(batch if decoded is schema else batch.select(schema.names))


def _with_columns(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The schema, and behind its columns those named that it lacks."""
    lacking = [name for name in names if name not in schema.names]
    return pa.schema([*schema, *select_columns(*lacking)]) if lacking else schema


def _decode(portion: Sequence[_Read], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    joined = JoinedBlocks([block for _, block in portion])
    if not joined.hold_inner_batch():
        yield from decode_parts(joined, schema, grown_bytes=_GROWN_BYTES)
        return
    # a stored batch becomes rows, among them perhaps some of before or behind its range
    parts = [_inside(decode_block(block, schema), range_) for range_, block in portion]
    whole = pa.Table.from_batches(parts).combine_chunks().to_batches()
    yield whole[0] if whole else parts[0]


def _inside(batch: pa.RecordBatch, range_: QueueRange) -> pa.RecordBatch:
    """Without the messages of stored batches that reach over the range's ends."""
    offsets = batch.column("queueOffset").to_numpy()
    if not len(offsets) or (range_.begin <= offsets[0] and offsets[-1] < range_.end):
        return batch
    return batch.filter(pa.array((offsets >= range_.begin) & (offsets < range_.end)))


def _split_large(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch, without copying, where bodies have grown beyond what a consumer should get at once."""
    if not batch.num_rows:
        return
    if "body" not in batch.schema.names or batch.get_total_buffer_size() <= _LARGEST_BATCH_BYTES:
        yield batch
        return
    body = batch.column("body")
    ends = np.frombuffer(body.buffers()[1], np.int32)[body.offset + 1 : body.offset + 1 + len(body)]
    portions = (ends - 1) // _LARGEST_BATCH_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(portions)) + 1).tolist(), len(body)]
    for begin, end in pairwise(cuts):
        yield batch.slice(begin, end - begin)
