"""Blocks of large messages, whose bodies are copied once, against the same blocks joined first."""

import random
import struct
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from rmqtools import MessageBlock, QueueRange
from rmqtools.arrow import select_columns
from rmqtools.arrow.decode import JoinedBlocks, decode_parts
from rmqtools.arrow.read_range import _decode
from rmqtools.arrow.stored import find_plain
from rmqtools.errors import ProtocolError
from rmqtools.model.block import LARGE_MESSAGE_BYTES
from tests.unit.arrow.stored_messages import (
    COMPRESSED,
    INNER_BATCH,
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


def joined(blocks: Sequence[MessageBlock]) -> JoinedBlocks:
    return JoinedBlocks(blocks, with_bodies=True)


def decoded(blocks: JoinedBlocks) -> pa.Table:
    return pa.Table.from_batches(decode_parts(blocks, corrupt_body="raw"))


def outcome(blocks: JoinedBlocks) -> pa.Table | str:
    try:
        return pa.Table.from_batches(decode_parts(blocks))
    except ProtocolError as error:
        return str(error)


@pytest.mark.parametrize("stored", [pytest.param(stored, id=name) for name, stored in UNUSUAL.items()])
def test_rows_are_the_same_as_of_joined_blocks(stored):
    blocks = [block_of([LARGE, stored]), block_of([OTHER], before=b"before")]
    bodiless = joined(blocks)
    whole = decoded(bodiless)

    whole.validate(full=True)
    assert bodiless.bodies is not None
    assert len(bodiless.data) < 4096
    assert find_plain(bodiless.data, bodiless.starts).rows[0] == 0
    assert whole.column("body").to_pylist()[0] == LARGE.body
    assert whole.equals(decoded(JoinedBlocks(blocks)))


def test_a_stored_batch_is_seen_and_taken_apart():
    blocks = [block_of([LARGE]), block_of([inner_batch([b"one", b"two"])])]

    assert joined(blocks).hold_inner_batch()
    assert decoded(joined(blocks)).equals(decoded(JoinedBlocks(blocks)))


@pytest.mark.parametrize("sys_flag", [COMPRESSED, INNER_BATCH])
def test_a_body_that_cannot_be_read_is_given_as_it_is_stored(sys_flag):
    broken = bytearray(replace(OTHER, sys_flag=0).encode())
    struct.pack_into(">i", broken, 36, sys_flag)
    blocks = [block_of([LARGE]), MessageBlock(QUEUE, bytes(broken), [0], 1000)]

    assert decoded(joined(blocks)).equals(decoded(JoinedBlocks(blocks)))


@pytest.mark.parametrize(
    ("at", "number"),
    [
        pytest.param(_BODY_LENGTH_AT, -1, id="body-of-less-than-nothing"),
        pytest.param(_BODY_LENGTH_AT, 2**31 - 1, id="body-longer-than-the-message"),
        pytest.param(0, 2**31 - 1, id="message-longer-than-the-block"),
        pytest.param(0, 90, id="message-shorter-than-its-body"),
    ],
)
def test_lengths_that_do_not_fit_mean_the_same_as_in_joined_blocks(at, number):
    broken = bytearray(LARGE.encode())
    struct.pack_into(">i", broken, at, number)
    blocks = [block_of([LARGE]), MessageBlock(QUEUE, bytes(broken), [0], 1000)]

    assert joined(blocks).bodies is None
    assert outcome(joined(blocks)) == outcome(JoinedBlocks(blocks))


def test_small_messages_and_columns_without_bodies_are_joined():
    small, large = [block_of([Stored()]), block_of([Stored()])], [block_of([LARGE]), block_of([OTHER])]

    assert joined(small).bodies is None
    assert JoinedBlocks(large).bodies is None
    assert joined(large[:1]).bodies is None


def test_flags_of_compressed_messages_are_right_where_bodies_are_not_read():
    body = random.Random(1).randbytes(2 * LARGE_MESSAGE_BYTES)
    blocks = [block_of([replace(LARGE, body=body, sys_flag=COMPRESSED)]), block_of([OTHER])]
    read = [(QueueRange(QUEUE, 0, 1000), block) for block in blocks]
    (batch,) = _decode(read, select_columns("queueOffset", "sysFlag"), "fail")

    assert batch.column("sysFlag").to_pylist() == [0, 0]
