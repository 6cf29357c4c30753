"""A range of a queue as record batches."""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator
from contextlib import aclosing
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow.decode import decode_block
from rmqtools.arrow.schema import MESSAGE_SCHEMA
from rmqtools.model.block import MessageBlock
from rmqtools.model.queue import QueueRange

if TYPE_CHECKING:
    from rmqtools.sync import Client

ROWS_PER_BATCH: Final = 4096  # from 1000 on the price of a row is flat, decoding and in Spark
BYTES_PER_BATCH: Final = 2 * 1024 * 1024
_LARGEST_BATCH_BYTES: Final = 16 * 1024 * 1024  # decompressed bodies may have grown a thousandfold


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
    blocks = client.asynchronous.read_blocks(
        range_,
        max_messages=rows_per_batch,
        max_bytes=BYTES_PER_BATCH,
        tags=tags,
        sql=sql,
        fail_on_data_loss=fail_on_data_loss,
    )
    return client.iterate(_batches(blocks, range_, schema, pa.array(sorted(tags), pa.string())))


async def _batches(
    blocks: AsyncGenerator[MessageBlock, None], range_: QueueRange, schema: pa.Schema, wanted: pa.StringArray
) -> AsyncIterator[pa.RecordBatch]:
    """Decode on the loop: on the caller's thread the loop and it would wait for each other all the time."""
    async with aclosing(blocks):
        async for block in blocks:
            batch = _inside(decode_block(block, schema), range_)
            if len(wanted):  # brokers compare hash codes, so others come through
                batch = batch.filter(pc.is_in(batch.column("tags"), value_set=wanted))
            for part in _split_large(batch):
                yield part


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
