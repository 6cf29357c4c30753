"""A range of a queue as record batches."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rmqtools.arrow.decode import decode_block
from rmqtools.model.queue import QueueRange

if TYPE_CHECKING:
    from rmqtools.sync import Client

ROWS_PER_BATCH: Final = 4096  # from 1000 on the price of a row is flat, decoding and in Spark
BYTES_PER_BATCH: Final = 2 * 1024 * 1024
_LARGEST_BATCH_BYTES: Final = 16 * 1024 * 1024  # decompressed bodies may have grown a thousandfold


def read_range(
    client: "Client", range_: QueueRange, *, rows_per_batch: int = ROWS_PER_BATCH
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range, by queue offset, as batches of ``MESSAGE_SCHEMA``.

    A batch has ``rows_per_batch`` rows or a little more, however few a pull brings; fewer only where the
    messages are large (some 2 MiB as stored) or the range ends. Offsets without a message (filtered,
    compacted, transactions) are passed over.

    Raises:
        DataLossError: a part of the range is not stored, or no longer; no row after it was given.
        RemotingError: the broker did not answer.
    """
    for block in client.read_blocks(range_, max_messages=rows_per_batch, max_bytes=BYTES_PER_BATCH):
        yield from _split_large(decode_block(block))


def _split_large(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch, without copying, where bodies have grown beyond what a consumer should get at once."""
    if batch.nbytes <= _LARGEST_BATCH_BYTES:
        yield batch
        return
    body = batch.column("body")
    ends = np.frombuffer(body.buffers()[1], np.int32)[body.offset + 1 : body.offset + 1 + len(body)]
    portions = (ends - 1) // _LARGEST_BATCH_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(portions)) + 1).tolist(), len(body)]
    for begin, end in pairwise(cuts):
        yield batch.slice(begin, end - begin)
