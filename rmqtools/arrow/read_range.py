"""Reads ranges of queues as record batches."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow.cut_blocks import CutBlocks
from rmqtools.arrow.decode import JoinedBlocks, decode_parts
from rmqtools.arrow.portions import BYTES_PER_BATCH, Portion, in_portions
from rmqtools.arrow.schema import MESSAGE_SCHEMA, select_columns
from rmqtools.arrow.spans import text_array
from rmqtools.config.text import check_choice
from rmqtools.model.block import CORRUPT_BODY_CHOICES, CorruptBody, MessageBlock
from rmqtools.model.message_const import PROPERTY_INNER_NUM
from rmqtools.model.queue import QueueRange

if TYPE_CHECKING:
    from rmqtools.sync.client import Client

ROWS_PER_BATCH: Final = 4096  # from 1000 on a row's cost no longer falls, in decoding and in Spark
_GROWN_BYTES: Final = 2 * 1024 * 1024  # of all decompressed bodies: they may grow a thousandfold
_LARGEST_BATCH_BYTES: Final = 16 * 1024 * 1024  # of messages from inner batches
_RANGES_AT_ONCE: Final = 8  # each holds a batch
K = TypeVar("K")
T = TypeVar("T")


def read_range(
    client: "Client",
    range_: QueueRange,
    *,
    rows_per_batch: int = ROWS_PER_BATCH,
    schema: pa.Schema = MESSAGE_SCHEMA,
    tags: Collection[str] = (),
    sql: str | None = None,
    fail_on_data_loss: bool = True,
    corrupt_body: CorruptBody = "fail",
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range, by queue offset, as batches of ``schema``.

    A batch has ``rows_per_batch`` rows or a few more, whatever the size of pulls. It has fewer only if the
    messages are large (about 4 MiB stored, 8 MiB if a message has 32 KiB or more, or 2 MiB decompressed), the
    range ends, or brokers do not filter out all other tags. Offsets without a message (filtered, compacted,
    transactions) are skipped.

    Args:
        client: the client that reads.
        range_: the queue and its offsets.
        rows_per_batch: see above.
        schema: the columns, of :func:`message_schema` or :func:`select_columns`.
        tags: only messages with one of these; empty: all.
        sql: only messages whose properties meet this SQL92 condition.
        fail_on_data_loss: see :meth:`rmqtools.Client.read_blocks`.
        corrupt_body: handling of a message whose body cannot be read: ``fail`` raises, ``raw`` gives
            the bytes as they are stored, ``null`` gives null; see :func:`decode_block`.

    Raises:
        ConfigError: both ``tags`` and ``sql``, or a ``corrupt_body`` that is none of these.
        DataLossError: a part of the range is not stored, or no longer; no row behind it was yielded.
        RemotingError: the broker did not answer.
        CorruptBodyError: a body that cannot be read; the text names queue and queue offset.
        ProtocolError: a message whose head is broken; the text names queue and queue offset.
    """
    return read_ranges(
        client,
        (range_,),
        rows_per_batch=rows_per_batch,
        schema=schema,
        tags=tags,
        sql=sql,
        fail_on_data_loss=fail_on_data_loss,
        corrupt_body=corrupt_body,
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
    corrupt_body: CorruptBody = "fail",
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of several ranges, one range after the other; each as :func:`read_range` does.

    Small ranges are read at the same time: up to 8, with ``rows_per_batch`` messages in total. Those of one
    topic and broker come as one batch.

    Args:
        client: the client that reads.
        ranges: the queues and their offsets.
        rows_per_batch: see :func:`read_range`; errors are also the same.
        schema: the columns.
        tags: only messages with one of these.
        sql: only messages whose properties meet this condition.
        fail_on_data_loss: see :meth:`rmqtools.Client.read_blocks`.
        corrupt_body: see :func:`read_range`.
    """
    check_choice("corrupt_body", corrupt_body, CORRUPT_BODY_CHOICES)

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
    portions = in_portions(found, max_rows=rows_per_batch, with_bodies="body" in schema.names)
    wanted = text_array(sorted(tags))
    return client.iterate(_batches(portions, schema, wanted, corrupt_body))


async def _batches(
    portions: AsyncGenerator[Portion, None],
    schema: pa.Schema,
    wanted: pa.StringArray,
    corrupt_body: CorruptBody,
) -> AsyncGenerator[pa.RecordBatch, None]:
    """Decode on the loop, because the caller's thread and the loop would compete for the GIL.

    Keeps no reference to a block or batch that was passed on: the next one then uses the same memory, which
    is still in the processor's cache.
    """
    needed = ["queueOffset", *(["tags"] if len(wanted) else [])]
    if len(wanted) and corrupt_body != "fail":
        needed.append("properties")
    decoded = _with_columns(schema, needed)
    async with aclosing(portions):
        async for portion in portions:
            for batch in _wanted_parts(_decode(portion, decoded, corrupt_body), wanted, corrupt_body):
                yield batch if decoded is schema else batch.select(schema.names)
                del batch
            del portion


def _wanted_parts(
    batches: Iterator[pa.RecordBatch], wanted: pa.StringArray, corrupt_body: CorruptBody
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if len(wanted):  # brokers compare hash codes, so other tags may arrive
            batch = batch.filter(_has_tags(batch, wanted, corrupt_body))
        yield from _split_large(batch)


def _has_tags(batch: pa.RecordBatch, wanted: pa.StringArray, corrupt_body: CorruptBody) -> pa.BooleanArray:
    """Return which rows have one of the tags. Batches that cannot be unwrapped count: tags unknown."""
    found = pc.is_in(batch.column("tags"), value_set=wanted)
    if corrupt_body == "fail":
        return found
    counts = pc.map_lookup(batch.column("properties"), PROPERTY_INNER_NUM, "first")
    return pc.or_(found, pc.is_valid(counts))


def _with_columns(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Return the schema with the named columns that it lacks, at its end."""
    lacking = [name for name in names if name not in schema.names]
    return pa.schema([*schema, *select_columns(*lacking)]) if lacking else schema


def _decode(portion: Portion, schema: pa.Schema, corrupt_body: CorruptBody) -> Iterator[pa.RecordBatch]:
    if isinstance(portion, CutBlocks):
        yield from decode_parts(portion, schema, grown_bytes=_GROWN_BYTES, corrupt_body=corrupt_body)
        return
    joined = JoinedBlocks([block for _, block in portion])
    if not joined.hold_inner_batch():
        yield from decode_parts(joined, schema, grown_bytes=_GROWN_BYTES, corrupt_body=corrupt_body)
        return
    # a stored batch becomes rows, some of them possibly outside its range
    parts: list[pa.RecordBatch] = []
    size = 0
    for range_, block in portion:
        alone = JoinedBlocks([block])
        for batch in decode_parts(alone, schema, grown_bytes=_GROWN_BYTES, corrupt_body=corrupt_body):
            parts.append(_inside(batch, range_))
            size += parts[-1].get_total_buffer_size()
            if size > _LARGEST_BATCH_BYTES:
                yield _combined(parts)
                parts, size = [], 0
    if parts:
        yield _combined(parts)


def _combined(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    whole = pa.Table.from_batches(parts).combine_chunks().to_batches()
    return whole[0] if whole else parts[0]


def _inside(batch: pa.RecordBatch, range_: QueueRange) -> pa.RecordBatch:
    """Drop messages of inner batches that are outside the range."""
    offsets = batch.column("queueOffset").to_numpy()
    if not len(offsets) or (range_.begin <= offsets[0] and offsets[-1] < range_.end):
        return batch
    return batch.filter(pa.array((offsets >= range_.begin) & (offsets < range_.end)))


def _split_large(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Divide a batch, without copying, if its bodies are too large for one batch."""
    if not batch.num_rows:
        return
    if batch.get_total_buffer_size() <= _LARGEST_BATCH_BYTES or "body" not in batch.schema.names:
        yield batch
        return
    body = batch.column("body")
    ends = np.frombuffer(body.buffers()[1], np.int32)[body.offset + 1 : body.offset + 1 + len(body)]
    portions = (ends - 1) // _LARGEST_BATCH_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(portions)) + 1).tolist(), len(body)]
    for begin, end in pairwise(cuts):
        yield batch.slice(begin, end - begin)


class _Begun(Generic[K, T]):
    """An iterator whose first item is being made."""

    def __init__(self, key: K, weight: int, items: AsyncGenerator[T, None]) -> None:
        self.key = key
        self.weight = weight
        self.items = items
        self.first = asyncio.ensure_future(_next(items))


async def in_turn(
    weighed: Iterable[tuple[K, int, AsyncGenerator[T, None]]], *, max_weight: int, at_once: int
) -> AsyncGenerator[tuple[K, T], None]:
    """Yield the items of all iterators, one iterator after the other.

    Keeps no reference to an item that was yielded.

    Args:
        weighed: iterators, each with a key that is yielded with its items, and a weight.
        max_weight: maximum weight of all running iterators; a heavier one starts when its turn comes.
        at_once: maximum number of running iterators; each of them holds one item.
    """
    waiting = deque(weighed)
    begun: deque[_Begun[K, T]] = deque()

    def may_begin() -> bool:
        return not begun or (
            len(begun) < at_once and sum(one.weight for one in begun) + waiting[0][1] <= max_weight
        )

    try:
        while waiting or begun:
            while waiting and may_begin():
                begun.append(_Begun(*waiting.popleft()))
            found = await begun[0].first
            while found:
                yield begun[0].key, found.pop()
                found = await _next(begun[0].items)
            begun.popleft()
    finally:
        for one in begun:
            one.first.cancel()
        await asyncio.gather(*(one.first for one in begun), return_exceptions=True)
        for one in begun:
            await one.items.aclose()


async def _next(items: AsyncGenerator[T, None]) -> list[T]:
    """Return the next item in a list, so that taking it out leaves no other reference. Empty at the end."""
    async for item in items:
        return [item]
    return []
