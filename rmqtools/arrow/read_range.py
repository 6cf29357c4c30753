"""Ranges of queues as record batches."""

from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from contextlib import aclosing
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow.decode import JoinedBlocks, decode_block, decode_joined
from rmqtools.arrow.in_turn import in_turn
from rmqtools.arrow.schema import MESSAGE_SCHEMA
from rmqtools.model.block import MessageBlock
from rmqtools.model.queue import QueueRange

if TYPE_CHECKING:
    from rmqtools.sync import Client

ROWS_PER_BATCH: Final = 4096  # from 1000 on the price of a row is flat, decoding and in Spark
BYTES_PER_BATCH: Final = 2 * 1024 * 1024
_LARGEST_BATCH_BYTES: Final = 16 * 1024 * 1024  # decompressed bodies may have grown a thousandfold
_RANGES_AT_ONCE: Final = 8  # each holds a batch

_Read: TypeAlias = tuple[MessageBlock, QueueRange]
"""A block, and the range it was read for."""


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
    messages are large (some 2 MiB as stored), the range ends, or brokers let other tags through. Offsets
    without a message (filtered, compacted, transactions) are passed over.

    Args:
        client: who reads.
        range_: which offsets of which queue.
        rows_per_batch: see above.
        schema: the columns, of :func:`message_schema`.
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

    def blocks_of(range_: QueueRange) -> AsyncGenerator[_Read, None]:
        blocks = client.asynchronous.read_blocks(
            range_,
            max_messages=rows_per_batch,
            max_bytes=BYTES_PER_BATCH,
            tags=tags,
            sql=sql,
            fail_on_data_loss=fail_on_data_loss,
        )
        return _with_range(blocks, range_)

    weighed = [(len(range_), blocks_of(range_)) for range_ in ranges]
    found = in_turn(weighed, max_weight=rows_per_batch, at_once=_RANGES_AT_ONCE)
    portions = _portions(found, rows_per_batch)
    return client.iterate(_batches(portions, schema, pa.array(sorted(tags), pa.string())))


async def _with_range(
    blocks: AsyncGenerator[MessageBlock, None], range_: QueueRange
) -> AsyncGenerator[_Read, None]:
    async with aclosing(blocks):
        async for block in blocks:
            yield block, range_


async def _portions(found: AsyncGenerator[_Read, None], max_rows: int) -> AsyncGenerator[list[_Read], None]:
    """Blocks to be decoded together: a batch has a fixed price here, and one of 2 ms in Spark."""
    held: list[_Read] = []
    rows = size = 0
    async with aclosing(found):
        async for block, range_ in found:
            fits = rows + len(block) <= max_rows and size + len(block.buffer) <= BYTES_PER_BATCH
            if held and not (fits and _is_alike(held[0][0], block)):
                yield held
                held, rows, size = [], 0, 0
            held.append((block, range_))
            rows += len(block)
            size += len(block.buffer)
            if rows >= max_rows or size >= BYTES_PER_BATCH:
                yield held
                held, rows, size = [], 0, 0
    if held:
        yield held


def _is_alike(first: MessageBlock, block: MessageBlock) -> bool:
    one, other = first.queue, block.queue
    return (one.topic, one.broker_name) == (other.topic, other.broker_name)


async def _batches(
    portions: AsyncGenerator[list[_Read], None], schema: pa.Schema, wanted: pa.StringArray
) -> AsyncGenerator[pa.RecordBatch, None]:
    """Decode on the loop: on the caller's thread the loop and it would wait for each other all the time."""
    async with aclosing(portions):
        async for portion in portions:
            batch = _decode(portion, schema)
            if len(wanted):  # brokers compare hash codes, so others come through
                batch = batch.filter(pc.is_in(batch.column("tags"), value_set=wanted))
            for part in _split_large(batch):
                yield part


def _decode(portion: list[_Read], schema: pa.Schema) -> pa.RecordBatch:
    joined = JoinedBlocks([block for block, _ in portion])
    if not joined.hold_inner_batch():
        return decode_joined(joined, schema)
    # a stored batch becomes rows, among them perhaps some of before or behind its range
    parts = [_inside(decode_block(block, schema), range_) for block, range_ in portion]
    whole = pa.Table.from_batches(parts).combine_chunks().to_batches()
    return whole[0] if whole else parts[0]


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
    if batch.nbytes <= _LARGEST_BATCH_BYTES:
        yield batch
        return
    body = batch.column("body")
    ends = np.frombuffer(body.buffers()[1], np.int32)[body.offset + 1 : body.offset + 1 + len(body)]
    portions = (ends - 1) // _LARGEST_BATCH_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(portions)) + 1).tolist(), len(body)]
    for begin, end in pairwise(cuts):
        yield batch.slice(begin, end - begin)
