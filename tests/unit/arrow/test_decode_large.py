"""Blocks of large messages, which are cut when they come, against the same blocks joined."""

import asyncio
import random
import struct
import tracemalloc
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from rmqtools import MessageBlock, MessageQueue, QueueRange
from rmqtools.arrow import select_columns
from rmqtools.arrow.cut_blocks import BlockCutter, CutBlocks
from rmqtools.arrow.decode import JoinedBlocks, StoredRows, decode_parts
from rmqtools.arrow.portions import BYTES_PER_BATCH, LARGE_BYTES_PER_BATCH, in_portions
from rmqtools.arrow.read_range import _decode
from rmqtools.arrow.stored import find_plain
from rmqtools.errors import CorruptBodyError
from rmqtools.model.block import LARGE_MESSAGE_BYTES
from tests.unit.arrow.stored_messages import (
    COMPRESSED,
    QUEUE,
    Stored,
    block_of,
    inner_batch,
    properties_of,
)
from tests.unit.arrow.test_decode import UNUSUAL

LARGE = Stored(body=b"x" * 20 * LARGE_MESSAGE_BYTES, properties=properties_of(KEYS="k", colour="blue"))
OTHER = Stored(body=b"y" * 20 * LARGE_MESSAGE_BYTES, properties=properties_of(KEYS="l"), queue_offset=9)
_BODY_LENGTH_AT = 84


def cut(blocks: Sequence[MessageBlock]) -> CutBlocks:
    return cut_in(sum(len(block.buffer) for block in blocks), blocks)


def cut_in(room: int, blocks: Sequence[MessageBlock]) -> CutBlocks:
    cutter = BlockCutter(room)
    assert all(cutter.add(block) for block in blocks)
    assert len(cutter) == sum(map(len, blocks))
    return cutter.finish()


def decoded(rows: StoredRows) -> pa.Table:
    return pa.Table.from_batches(decode_parts(rows, corrupt_body="raw"))


def portions_of(
    *blocks: MessageBlock, max_rows: int = 1000, with_bodies: bool = True
) -> list[list[int] | int]:
    """The size of each portion: of its blocks that are not cut, else its number of rows."""

    async def found() -> AsyncGenerator[tuple[QueueRange, MessageBlock], None]:
        for block in blocks:
            yield QueueRange(block.queue, 0, 1000), block

    async def taken() -> list[list[int] | int]:
        portions = in_portions(found(), max_rows=max_rows, with_bodies=with_bodies)
        return [
            len(portion.starts) if isinstance(portion, CutBlocks) else [len(block) for _, block in portion]
            async for portion in portions
        ]

    return asyncio.run(taken())


@pytest.mark.parametrize("stored", [pytest.param(stored, id=name) for name, stored in UNUSUAL.items()])
def test_rows_are_the_same_as_of_joined_blocks(stored):
    blocks = [block_of([LARGE, stored]), block_of([OTHER], before=b"before")]
    rows = cut(blocks)
    whole = decoded(rows)

    whole.validate(full=True)
    assert len(rows.data) < 4096
    assert find_plain(rows.data, rows.starts).rows[0] == 0
    assert whole.column("body").to_pylist()[0] == LARGE.body
    assert whole.equals(decoded(JoinedBlocks(blocks)))


@pytest.mark.parametrize("last", [False, True])
def test_a_body_that_cannot_be_read_names_its_queue_or_is_given_as_it_is_stored(last):
    broken, queue = bytearray(replace(OTHER, sys_flag=0).encode()), MessageQueue("Orders", "a", 7)
    struct.pack_into(">i", broken, 36, COMPRESSED)
    blocks = [block_of([LARGE]), MessageBlock(queue, bytes(broken), [0], 1000)]
    blocks += [] if last else [block_of([LARGE])]

    assert decoded(cut(blocks)).equals(decoded(JoinedBlocks(blocks)))
    with pytest.raises(CorruptBodyError) as error:
        list(decode_parts(cut(blocks)))
    with pytest.raises(CorruptBodyError) as expected:
        list(decode_parts(JoinedBlocks(blocks)))
    assert str(error.value) == str(expected.value)
    assert "7" in str(error.value)


@pytest.mark.parametrize(
    ("at", "number"),
    [
        pytest.param(_BODY_LENGTH_AT, -1, id="body-of-less-than-nothing"),
        pytest.param(_BODY_LENGTH_AT, 2**31 - 1, id="body-longer-than-the-message"),
        pytest.param(0, 2**31 - 1, id="message-longer-than-the-block"),
        pytest.param(0, 90, id="message-shorter-than-its-body"),
    ],
)
def test_a_block_with_a_length_that_does_not_fit_is_not_cut(at, number):
    broken = bytearray(LARGE.encode())
    struct.pack_into(">i", broken, at, number)
    odd, cutter = MessageBlock(QUEUE, bytes(broken), [0], 1000), BlockCutter(8 * LARGE_BYTES_PER_BATCH)

    assert cutter.add(block_of([OTHER]))
    assert not cutter.add(odd)
    assert decoded(cutter.finish()).equals(decoded(JoinedBlocks([block_of([OTHER])])))
    assert portions_of(block_of([LARGE]), odd, block_of([OTHER])) == [1, [1], 1]


@pytest.mark.parametrize("start", [-1, 10**9])
def test_a_start_outside_its_block_is_not_cut(start):
    assert not BlockCutter(100).add(MessageBlock(QUEUE, Stored().encode(), [start], 1000))


def test_a_stored_batch_is_not_cut():
    batch = block_of([inner_batch([b"one", b"two"])])

    assert not BlockCutter(1000).add(batch)
    assert portions_of(block_of([LARGE]), batch, block_of([LARGE])) == [1, [1], 1]
    assert portions_of(block_of([LARGE]), batch, block_of([Stored()]), block_of([Stored()])) == [
        1,
        [1],
        [1, 1],
    ]


SMALL_BLOCK, LARGE_BLOCK = block_of([Stored()] * 3), block_of([LARGE])


def test_small_messages_and_columns_without_bodies_are_joined():
    assert portions_of(SMALL_BLOCK, SMALL_BLOCK) == [[3, 3]]
    assert portions_of(LARGE_BLOCK, LARGE_BLOCK, with_bodies=False) == [[1, 1]]


def test_small_messages_between_large_ones_are_cut_with_them():
    assert portions_of(SMALL_BLOCK, LARGE_BLOCK, SMALL_BLOCK, LARGE_BLOCK) == [8]


def test_a_portion_of_large_messages_has_more_bytes_and_no_more_rows():
    large = block_of([Stored(body=bytes(BYTES_PER_BATCH // 4))])

    assert BYTES_PER_BATCH * 2 == LARGE_BYTES_PER_BATCH
    assert portions_of(*[large] * 15) == [7, 7, 1]
    assert portions_of(*[large] * 5, max_rows=2) == [2, 2, 1]
    assert portions_of(*[large] * 9, with_bodies=False) == [[1, 1, 1], [1, 1, 1], [1, 1, 1]]


def test_a_block_that_is_larger_than_a_portion_is_one():
    larger, large = block_of([Stored(body=bytes(LARGE_BYTES_PER_BATCH + 1))]), block_of([LARGE])

    assert portions_of(large, larger, large) == [1, 1, 1]


@pytest.mark.parametrize(
    ("block", "max_rows"),
    [(block_of([Stored(body=bytes(BYTES_PER_BATCH))]), 1000), (SMALL_BLOCK, 3)],
    ids=["bytes", "rows"],
)
def test_a_portion_that_is_full_does_not_wait_for_the_next_block(block, max_rows):
    read: list[int] = []

    async def found() -> AsyncGenerator[tuple[QueueRange, MessageBlock], None]:
        for number in range(2):
            read.append(number)
            yield QueueRange(QUEUE, 0, 1000), block

    async def read_before_each_portion() -> list[int]:
        portions = in_portions(found(), max_rows=max_rows, with_bodies=False)
        return [len(read) async for _ in portions]

    assert asyncio.run(read_before_each_portion()) == [1, 2]


def test_few_bodies_do_not_hold_the_memory_of_many():
    tracemalloc.start()
    try:
        rows = cut_in(LARGE_BYTES_PER_BATCH, [block_of([LARGE])])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(LARGE.body) < kept < 2 * len(LARGE.body)
    assert len(rows.starts) == 1


def test_flags_of_compressed_messages_are_right_where_bodies_are_not_read():
    body = random.Random(1).randbytes(2 * LARGE_MESSAGE_BYTES)
    blocks = [block_of([replace(LARGE, body=body, sys_flag=COMPRESSED)]), block_of([OTHER])]
    read = [(QueueRange(QUEUE, 0, 1000), block) for block in blocks]
    (batch,) = _decode(read, select_columns("queueOffset", "sysFlag"), "fail")

    assert batch.column("sysFlag").to_pylist() == [0, 0]
