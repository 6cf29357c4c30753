"""Bodies that cannot be read, in record batches."""

import struct
import zlib
from dataclasses import dataclass, replace

import pytest

from rmqtools.arrow import MESSAGE_SCHEMA, decode_block, select_columns
from rmqtools.errors import BodyTooLargeError, ConfigError, CorruptBodyError
from rmqtools.model.block import MessageBlock
from tests.unit.arrow.stored_messages import BORN_V6, COMPRESSED, INNER_BATCH, QUEUE, V2, Stored, block_of


@dataclass(frozen=True)
class NotCompressed(Stored):
    """It says that it is compressed, and is not."""

    way: int = 0

    def encode(self) -> bytes:
        whole = bytearray(super().encode())
        struct.pack_into(">i", whole, 36, COMPRESSED | self.way | self.sys_flag)
        return bytes(whole)


STORED = [
    Stored(queue_offset=7),
    NotCompressed(queue_offset=8, body=b"no data"),
    Stored(queue_offset=9, sys_flag=COMPRESSED, body=b"good"),
    Stored(queue_offset=10),
]


@pytest.mark.parametrize("way", [0x000, 0x100, 0x200, 0x300, 0x700], ids=hex)
def test_a_corrupt_body_fails_with_its_queue_and_offset(way):
    broken = NotCompressed(queue_offset=8, body=b"no data", way=way)

    with pytest.raises(CorruptBodyError, match="before and behind it can be read") as caught:
        decode_block(block_of([Stored(), broken, Stored()]))

    assert f"message at queue offset 8 of {QUEUE} cannot be decoded" in str(caught.value)
    assert (caught.value.queue, caught.value.offset, caught.value.raw) == (QUEUE, 8, b"no data")


@pytest.mark.parametrize(("choice", "body"), [("raw", b"no data"), ("null", None)])
def test_a_corrupt_body_is_given_as_stored_or_as_null_in_a_row_that_keeps_the_compressed_bit(choice, body):
    rows = decode_block(block_of(STORED), corrupt_body=choice).to_pylist()

    assert [row["queueOffset"] for row in rows] == [7, 8, 9, 10]
    assert [row["body"] for row in rows] == [b"body", body, b"good", b"body"]
    assert [row["sysFlag"] & COMPRESSED for row in rows] == [0, COMPRESSED, 0, 0]


@pytest.mark.parametrize("choice", ["raw", "null"])
def test_a_broken_head_is_passed_over_and_logged(choice, caplog):
    stored = [Stored(queue_offset=7), Stored(queue_offset=8, magic=0x12345678), Stored(queue_offset=9)]

    batch = decode_block(block_of(stored), corrupt_body=choice)

    assert batch["queueOffset"].to_pylist() == [7, 9]
    assert "message_passed_over" in caplog.text
    assert f"queue offset 8 of {QUEUE}" in caplog.text


def test_an_unknown_choice_is_refused():
    with pytest.raises(ConfigError, match="corrupt_body='nil': want one of 'fail', 'raw', 'null'"):
        decode_block(block_of([Stored()]), corrupt_body="nil")  # type: ignore[arg-type]  # the mistake


def too_large() -> MessageBlock:
    return replace(block_of([Stored(sys_flag=COMPRESSED, body=bytes(1001))]), max_decompressed_bytes=1000)


@pytest.mark.parametrize("choice", ["fail", "null"])
def test_a_body_above_the_readers_limit_is_not_hidden_by_null(choice):
    with pytest.raises(BodyTooLargeError, match="max_decompressed_bytes=1000"):
        decode_block(too_large(), corrupt_body=choice)


def test_raw_gives_the_stored_bytes_of_a_body_above_the_readers_limit():
    (row,) = decode_block(too_large(), corrupt_body="raw").to_pylist()

    assert zlib.decompress(row["body"]) == bytes(1001)


BODILESS = select_columns(*(name for name in MESSAGE_SCHEMA.names if name != "body"))


@pytest.mark.parametrize(
    "form",
    [pytest.param({}, id="plain"), pytest.param({"sys_flag": BORN_V6}, id="ipv6"), {"magic": V2}],
)
def test_columns_without_the_body_decompress_no_body(form):
    stored = [NotCompressed(queue_offset=7, body=b"no data", **form), Stored(queue_offset=8)]

    rows = decode_block(block_of(stored), BODILESS).to_pylist()

    assert [row["queueOffset"] for row in rows] == [7, 8]
    assert [row["sysFlag"] & COMPRESSED for row in rows] == [0, 0]


def test_a_batch_that_cannot_be_taken_apart_fails_without_its_body_too():
    stored = Stored(body=b"\x00\x00", sys_flag=INNER_BATCH)

    with pytest.raises(CorruptBodyError):
        decode_block(block_of([stored]), BODILESS)
