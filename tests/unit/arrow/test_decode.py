"""The column by column decoder, against decoding the same messages one by one."""

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqtools import MessageBlock, MessageExt
from rmqtools.arrow import MESSAGE_SCHEMA, decode_block
from rmqtools.arrow.decode import JoinedBlocks, decode_parts
from rmqtools.errors import ProtocolError
from rmqtools.protocol.messages.inner_batch import unwrap
from rmqtools.protocol.messages.stored import decode_message
from tests.unit.arrow.stored_messages import (
    BORN_V6,
    COMPRESSED,
    QUEUE,
    STORE_V6,
    V2,
    Stored,
    block_of,
    inner_batch,
    properties_of,
)

PLAIN = Stored(properties=properties_of(KEYS="k1 k2", UNIQ_KEY="7F01", TAGS="t", colour="blue"))
LARGEST_MS = (2**63 - 1) // 1000

ODD_PROPERTIES = {
    "value-with-separator": b"a\x01b\x01c\x02d\x01e\x02",
    "no-last-separator": b"a\x01b\x02c\x01d",
    "empty-value": b"a\x01\x02b\x01c\x02",
    "empty-name": b"\x01v\x02b\x01c\x02",
    "entry-without-separator": b"novalue\x02a\x01b\x02",
    "as-many-of-both-but-not-in-turn": b"a\x01b\x01c\x02novalue\x02",
    "only-separators": b"\x01\x02",
    "only-the-second-separator": b"\x02",
    "name-twice": b"a\x01b\x02c\x01d\x02a\x01e\x02",
    "tags-twice": b"TAGS\x01b\x02TAGS\x01e\x02",
    "invalid-utf8-value": b"a\x01\xff\xfe\x02",
    "invalid-utf8-name": b"\xc3\x01v\x02",
    "half-character-before-separator": b"a\x01\xe4\xb8\x02",
}
UNUSUAL = {
    "no-properties": Stored(),
    "unicode": Stored(properties=properties_of(KEYS="ключ 鍵", имя="😀")),
    "empty-body": Stored(body=b""),
    "empty-body-marked-compressed": Stored(body=b"", sys_flag=COMPRESSED),
    "all-bytes": Stored(body=bytes(range(256))),
    "zlib": Stored(body=b"ab" * 50, sys_flag=COMPRESSED),
    "lz4": Stored(body=b"ab" * 50, sys_flag=COMPRESSED | 0x100),
    "zstd": Stored(body=b"ab" * 50, sys_flag=COMPRESSED | 0x200),
    "ipv6-born-host": Stored(sys_flag=BORN_V6),
    "ipv6-store-host": Stored(sys_flag=STORE_V6),
    "ipv6-both": Stored(sys_flag=BORN_V6 | STORE_V6, properties=properties_of(KEYS="k")),
    "transaction-bits": Stored(sys_flag=8),
    "second-magic": Stored(magic=V2),
    "long-topic": Stored(magic=V2, topic=b"t" * 300),
    "longest-v1-topic": Stored(topic=b"t" * 127),
    "other-topic": Stored(topic=b"Ordres"),
    "topic-that-is-not-utf8": Stored(topic=b"\xff\xfe"),
    "negative-numbers": Stored(flag=-5, queue_offset=-1, reconsume_times=-2),
    "largest-times": Stored(born_timestamp_ms=LARGEST_MS, store_timestamp_ms=-LARGEST_MS),
    "impossible-times": Stored(born_timestamp_ms=LARGEST_MS + 1, store_timestamp_ms=-(2**63)),
    "unique-key-among-others": Stored(properties=properties_of(UNIQ_KEY="A" * 32, a="b")),
    **{name: Stored(properties=text) for name, text in ODD_PROPERTIES.items()},
}


def one_by_one(block: MessageBlock) -> pa.RecordBatch:
    """The oracle: every message decoded alone, every value put into Arrow by Arrow."""
    decoded = [decode_message(block.buffer, start) for start in block.starts]
    rows = [_row(message) for stored in decoded for message in unwrap(stored)]
    return pa.RecordBatch.from_pylist(rows, schema=MESSAGE_SCHEMA)


def _row(message: MessageExt) -> dict[str, object]:
    return {
        "topic": message.topic,
        "brokerName": QUEUE.broker_name,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "body": message.body,
        "tags": message.tags,
        "keys": message.keys,
        "properties": list(message.properties.items()),
        "msgId": message.msg_id,
        "bornTimestamp": _microseconds(message.born_timestamp_ms),
        "storeTimestamp": _microseconds(message.store_timestamp_ms),
        "bornHost": message.born_host,
        "reconsumeTimes": message.reconsume_times,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
    }


def _microseconds(milliseconds: int) -> int | None:
    return milliseconds * 1000 if abs(milliseconds) <= LARGEST_MS else None


def check(block: MessageBlock) -> None:
    decoded = decode_block(block)
    decoded.validate(full=True)
    assert decoded.schema.equals(MESSAGE_SCHEMA, check_metadata=True)
    assert decoded.equals(one_by_one(block))


def test_a_plain_message_gives_these_values():
    (row,) = decode_block(block_of([PLAIN])).to_pylist()

    assert row == {
        "topic": "Orders",
        "brokerName": "broker-a",
        "queueId": 3,
        "queueOffset": 7,
        "body": b"body",
        "tags": "t",
        "keys": "k1 k2",
        "properties": [("KEYS", "k1 k2"), ("UNIQ_KEY", "7F01"), ("TAGS", "t"), ("colour", "blue")],
        "msgId": "7F01",
        "bornTimestamp": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
        "storeTimestamp": datetime(2023, 11, 14, 22, 13, 20, 456000, UTC),
        "bornHost": "192.168.0.1:40001",
        "reconsumeTimes": 0,
        "sysFlag": 0,
        "flag": 0,
    }


@pytest.mark.parametrize("magic", [PLAIN.magic, V2], ids=["plain", "one-by-one"])
@pytest.mark.parametrize(
    ("stored", "read"),
    [
        pytest.param(b"tenant%Orders", "Orders", id="in-a-namespace"),
        pytest.param(b"tenant%Ordres", "tenant%Ordres", id="another-topic-in-a-namespace"),
        pytest.param(b"%RETRY%group", "%RETRY%group", id="retry-topic"),
    ],
)
def test_a_topic_is_named_as_its_reader_names_it(magic, stored, read):
    (row,) = decode_block(block_of([Stored(topic=stored, magic=magic)])).to_pylist()

    assert row["topic"] == read


@pytest.mark.parametrize("beside", [[], [PLAIN]], ids=["alone", "among-plain-ones"])
@pytest.mark.parametrize("message", UNUSUAL.values(), ids=UNUSUAL)
def test_an_unusual_message_equals_the_oracle(message, beside):
    check(block_of([*beside, message, *beside]))


MANY = properties_of(**{f"name{number}": "v" for number in range(60)})


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([properties_of(KEYS="k", TAGS="t")] * 3, id="the-same"),
        pytest.param(
            [properties_of(KEYS="k", TAGS="t"), properties_of(TAGS="t", KEYS="k")], id="in-another-order"
        ),
        pytest.param([properties_of(KEYS="k"), properties_of(TAGS="t")], id="of-the-same-length"),
        pytest.param([properties_of(KEYS="k", S="s"), properties_of(KEY="k", SS="s")], id="cut-elsewhere"),
        pytest.param([properties_of(KEYS="k", TAGS="t"), properties_of(KEYS="k")], id="fewer"),
        pytest.param([b"", properties_of(KEYS="k")], id="none-in-the-first"),
        pytest.param([MANY, MANY + properties_of(name59="w"), b""], id="more-than-48-and-one-twice"),
        pytest.param([properties_of(a="b", c="d") + properties_of(a="e")] * 3, id="one-twice-in-each"),
        pytest.param([b"a\x01b\x02\xe4\xb8", b"\xad\x01b\x02"], id="half-a-character-in-each"),
    ],
)
def test_whatever_properties_messages_have_in_common_each_keeps_its_own(texts):
    check(block_of([Stored(properties=text) for text in texts]))


def test_bytes_before_and_between_the_starts_are_passed_over():
    block = block_of([PLAIN, Stored(body=b"left out"), PLAIN], before=b"\x01\x02junk")

    check(MessageBlock(QUEUE, block.buffer, [block.starts[0], block.starts[2]], 1000))


@pytest.mark.parametrize(
    ("at", "damage"),
    [
        pytest.param(4, struct.pack(">I", 0x12345678), id="magic"),
        pytest.param(52, struct.pack(">i", 65536), id="born-port"),
        pytest.param(68, struct.pack(">i", -1), id="store-port"),
        pytest.param(84, struct.pack(">i", 10_000), id="body-beyond-the-buffer"),
        pytest.param(84, struct.pack(">i", 2**31 - 1), id="body-of-2-gib"),
        pytest.param(92, b"\xff", id="topic-length-negative"),
        pytest.param(92, b"\x7f", id="topic-beyond-the-buffer"),
    ],
)
def test_bytes_that_are_no_message_raise(at, damage):
    stored = bytearray(Stored().encode())
    stored[at : at + len(damage)] = damage
    whole = PLAIN.encode()

    with pytest.raises(ProtocolError):
        decode_block(MessageBlock(QUEUE, whole + bytes(stored), [0, len(whole)], 2))


def test_a_topic_longer_than_the_first_form_can_say_raises():
    with pytest.raises(ProtocolError):
        decode_block(block_of([Stored(topic=b"t" * 128)]))


def test_bytes_after_the_properties_are_not_properties():
    padded = bytearray(PLAIN.encode() + b"more\x01text\x02")
    padded[:4] = struct.pack(">i", len(padded))

    check(MessageBlock(QUEUE, bytes(padded), [0], 1))


@pytest.mark.parametrize("length", [1, 40, 87, 90, len(PLAIN.encode()) - 1])
def test_a_message_that_is_cut_off_raises(length):
    with pytest.raises(ProtocolError):
        decode_block(MessageBlock(QUEUE, PLAIN.encode()[:length], [0], 1))


PIECES = [
    b"\x01",
    b"\x02",
    b"a\x01b\x02",
    b"TAGS",
    b"KEYS",
    b"UNIQ_KEY",
    b"x",
    "é".encode(),
    b"\xff",
    b"\xe4\xb8",
]
property_texts = st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)
sys_flags = st.sampled_from(
    [0, 0, 0, 8, BORN_V6, STORE_V6, BORN_V6 | STORE_V6, COMPRESSED, COMPRESSED | 0x100]
)
milliseconds = st.integers(-(2**63), 2**63 - 1) | st.just(1_700_000_000_000)
stored_messages = st.builds(
    Stored,
    body=st.binary(max_size=20),
    properties=property_texts | st.just(PLAIN.properties),
    topic=st.sampled_from([b"Orders", b"Orders", b"Ordres", b"T", b"\xff", "тема".encode()]),
    magic=st.sampled_from([PLAIN.magic, PLAIN.magic, V2]),
    sys_flag=sys_flags,
    flag=st.integers(-(2**31), 2**31 - 1),
    queue_offset=st.integers(0, 2**63 - 1),
    commit_log_offset=st.integers(0, 2**63 - 1),
    born_timestamp_ms=milliseconds,
    store_timestamp_ms=milliseconds,
    born_port=st.integers(0, 65535),
    store_port=st.integers(0, 65535),
    reconsume_times=st.integers(-(2**31), 2**31 - 1),
)


@settings(deadline=None)
@given(st.lists(stored_messages, min_size=1, max_size=12))
def test_any_messages_equal_the_oracle(messages):
    check(block_of(messages))


@settings(deadline=None)
@given(stored_messages, st.integers(min_value=4), st.binary(min_size=1, max_size=4))
def test_any_damage_gives_what_the_oracle_gives(message, at, damage):
    stored = bytearray(message.encode())
    at = 4 + at % (len(stored) - 4)
    stored[at : at + len(damage)] = damage[: len(stored) - at]
    whole = PLAIN.encode()
    block = MessageBlock(QUEUE, whole + bytes(stored) + whole, [0, len(whole), len(whole) + len(stored)], 3)

    assert outcome(decode_block, block) == outcome(one_by_one, block)


def outcome(decode: Callable[[MessageBlock], pa.RecordBatch], block: MessageBlock) -> Any:
    try:
        return decode(block)
    except ProtocolError:
        return ProtocolError


@pytest.mark.parametrize("sys_flag", [0, COMPRESSED, BORN_V6], ids=["plain", "compressed", "ipv6"])
def test_a_batch_stored_as_one_message_becomes_a_row_per_message(sys_flag):
    stored = [
        Stored(queue_offset=4),
        inner_batch([b"a", b"", b"c"], queue_offset=5, sys_flag=sys_flag),
        Stored(queue_offset=8),
    ]

    rows = decode_block(block_of(stored)).to_pylist()

    assert [row["queueOffset"] for row in rows] == [4, 5, 6, 7, 8]
    assert [row["body"] for row in rows] == [b"body", b"a", b"", b"c", b"body"]
    assert [row["flag"] for row in rows] == [0, 0, 1, 2, 0]
    assert [row["properties"] for row in rows[1:4]] == [[("colour", f"c{number}")] for number in range(3)]


@pytest.mark.parametrize("before", [b"", b"not a message"])
def test_blocks_together_give_the_rows_of_each_one_after_the_other(before):
    odd = Stored(properties=ODD_PROPERTIES["empty-value"], queue_offset=2)
    blocks = [
        block_of([PLAIN, odd], before=before),
        block_of([], before=before),
        block_of([Stored(sys_flag=COMPRESSED), inner_batch([b"a", b"b"], queue_offset=5)], before=before),
        block_of([Stored(sys_flag=BORN_V6), PLAIN], before=before),
    ]

    (batch,) = decode_parts(JoinedBlocks(blocks))

    rows = batch.to_pylist()
    assert rows == [row for block in blocks for row in decode_block(block).to_pylist()]
    assert len(rows) == 7
