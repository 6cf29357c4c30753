"""Ranges as batches: small blocks together, cut where bodies have grown."""

import weakref
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from rmqtools import MessageBlock, MessageQueue, QueueRange
from rmqtools.arrow import read_range, read_ranges, select_columns
from rmqtools.arrow.portions import LARGE_BYTES_PER_BATCH
from rmqtools.errors import ConfigError, CorruptBodyError, ProtocolError
from rmqtools.sync.loop import Bridge
from tests.support.fake import Fake
from tests.unit.arrow.stored_messages import (
    COMPRESSED,
    INNER_BATCH,
    QUEUE,
    Stored,
    block_of,
    inner_batch,
    properties_of,
)
from tests.unit.arrow.test_decode_corrupt import NotCompressed

RANGE = QueueRange(QUEUE, 0, 100)


def offsets_of(batches):
    return [batch.column("queueOffset").to_pylist() for batch in batches]


def bodies_of(batches):
    return [body for batch in batches for body in batch.column("body").to_pylist()]


class Blocks(Fake):
    """Hands out blocks as a client does, on the loop thread; of several reads, each has its own ones."""

    def __init__(self, *reads: Sequence[MessageBlock]) -> None:
        self.reads = list(reads)
        self.asked: dict[str, Any] = {}
        self.closed = False
        self.asynchronous = self
        self.iterate = Bridge().iterate

    async def _blocks(self, blocks: Sequence[MessageBlock]) -> AsyncGenerator[MessageBlock, None]:
        try:
            for block in blocks:
                yield block
        finally:
            self.closed = True

    def read_blocks(self, range_: QueueRange, **settings: object) -> AsyncGenerator[MessageBlock, None]:
        self.asked = {"range": range_, **settings}
        return self._blocks(self.reads.pop(0) if len(self.reads) > 1 else self.reads[0])


def test_blocks_are_asked_for_by_the_thousand_and_a_full_one_becomes_a_batch():
    client = Blocks([block_of([Stored()] * 3), block_of([Stored()]), block_of([Stored()])])

    batches = list(read_range(client, RANGE, rows_per_batch=3))

    assert [batch.num_rows for batch in batches] == [3, 2]
    assert client.asked["range"] == RANGE
    list(read_range(client, RANGE))
    assert client.asked["max_messages"] >= 1000


def test_blocks_that_are_too_many_or_too_large_together_are_two_batches():
    rows = block_of([Stored()] * 2)
    sizes = block_of([Stored(body=bytes(LARGE_BYTES_PER_BATCH * 2 // 3))])

    assert [batch.num_rows for batch in read_range(Blocks([rows, rows]), RANGE, rows_per_batch=3)] == [2, 2]
    assert [batch.num_rows for batch in read_range(Blocks([sizes, sizes]), RANGE)] == [1, 1]


def test_small_ranges_of_a_topic_and_broker_come_as_one_batch_in_their_order():
    ranges = [QueueRange(MessageQueue("Orders", broker, 0), 0, 2) for broker in ("a", "a", "b", "a")]
    reads = [
        [block_of([Stored(queue_offset=number * 10 + at) for at in range(2)], queue=range_.queue)]
        for number, range_ in enumerate(ranges)
    ]

    batches = list(read_ranges(Blocks(*reads), ranges))

    assert offsets_of(batches) == [[0, 1, 10, 11], [20, 21], [30, 31]]
    assert [set(batch.column("brokerName").to_pylist()) for batch in batches] == [{"a"}, {"b"}, {"a"}]


def test_of_stored_batches_in_several_ranges_each_gives_only_its_own():
    ranges = [QueueRange(MessageQueue("Orders", "a", 0), 9, 11), QueueRange(QUEUE, 8, 10)]
    block = block_of([inner_batch([b"a", b"b", b"c"], queue_offset=8)], queue=ranges[0].queue)

    (batch,) = read_ranges(Blocks([block]), ranges)

    assert batch.column("queueOffset").to_pylist() == [9, 10, 8, 9]
    assert batch.column("body").to_pylist() == [b"b", b"c", b"a", b"b"]


def test_of_stored_batches_without_a_message_in_the_range_nothing_is_given():
    block = block_of([inner_batch([b"a", b"b"], queue_offset=8)])

    assert list(read_range(Blocks([block, block]), QueueRange(QUEUE, 20, 30))) == []


def test_what_is_asked_wrongly_is_refused_before_anything_is_read(monkeypatch):
    client = Blocks([])
    monkeypatch.setattr(client, "read_blocks", lambda *_, **__: pytest.fail("both tags and sql"))

    with pytest.raises(pytest.fail.Exception, match="both tags and sql"):
        read_range(client, RANGE, tags=["a"], sql="a > 1")


@pytest.mark.process
def test_a_batch_that_grew_by_decompression_is_cut_and_loses_nothing():
    large = [
        Stored(body=bytes([number]) * 9_000_000, sys_flag=COMPRESSED, queue_offset=number)
        for number in range(5)
    ]

    batches = list(read_range(Blocks([block_of([*large, Stored(queue_offset=5)])]), RANGE))

    assert offsets_of(batches) == [[0], [1], [2], [3], [4, 5]]
    assert [body[0] for body in bodies_of(batches)[:5]] == [0, 1, 2, 3, 4]


def test_bodies_are_decompressed_no_further_than_a_batch_ahead():
    """Of two messages that grow to 9 MB the second is not looked at before the first is handed out."""
    stored = [Stored(body=bytes(9_000_000), sys_flag=COMPRESSED), Stored(queue_offset=1, magic=1)]

    batches = read_range(Blocks([block_of(stored)]), RANGE)

    assert next(batches).num_rows == 1
    with pytest.raises(ProtocolError, match="queue offset 1 "):
        next(batches)


@pytest.mark.process
def test_plain_messages_between_bodies_that_grow_keep_their_places():
    grown = [Stored(body=bytes(1_500_000), sys_flag=COMPRESSED, queue_offset=3 * at) for at in range(6)]
    plain = [Stored(queue_offset=3 * at + 1 + more) for at in range(6) for more in range(2)]
    stored = sorted([*grown, *plain], key=lambda message: message.queue_offset)

    batches = list(read_range(Blocks([block_of(stored)]), RANGE))

    assert offsets_of(batches) == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], [12, 13, 14, 15, 16, 17]]


@pytest.mark.process
def test_a_stored_batch_that_is_large_is_cut_and_loses_nothing():
    bodies = [bytes([number]) * 9_000_000 for number in range(4)]

    batches = list(read_range(Blocks([block_of([inner_batch(bodies, queue_offset=0)])]), RANGE))

    assert [batch.num_rows for batch in batches] == [1, 2, 1]
    assert [body[0] for body in bodies_of(batches)] == [0, 1, 2, 3]


def test_leaving_early_closes_the_read():
    client = Blocks([block_of([Stored()])] * 3)
    batches: Any = read_range(client, RANGE)  # a generator
    next(batches)

    batches.close()

    assert client.closed


def test_a_block_is_not_kept_while_the_next_is_read(monkeypatch):
    class Buffer(bytearray):
        """Can be referred to weakly, unlike bytes."""

    made, kept = [], []

    def block() -> MessageBlock:
        whole = block_of([Stored()] * 2)
        buffer: Any = Buffer(whole.buffer)
        made.append(weakref.ref(buffer))
        return MessageBlock(QUEUE, buffer, whole.starts, whole.next_offset)

    async def blocks() -> AsyncGenerator[MessageBlock, None]:
        for _ in range(3):
            kept.append(sum(buffer() is not None for buffer in made))
            yield block()

    client = Blocks([])
    monkeypatch.setattr(client, "read_blocks", lambda *_, **__: blocks())

    batches = list(read_range(client, RANGE, rows_per_batch=2))

    assert [batch.num_rows for batch in batches] == [2, 2, 2]
    assert kept == [0, 0, 0]


def test_tags_and_conditions_go_to_the_broker():
    client = Blocks([])

    assert list(read_range(client, RANGE, tags={"a", "b"}, fail_on_data_loss=False)) == []
    assert (client.asked["tags"], client.asked["sql"], client.asked["fail_on_data_loss"]) == (
        {"a", "b"},
        None,
        False,
    )


def test_tags_that_only_share_a_hash_code_are_left_out():
    """Brokers compare Java hash codes; those of "Aa" and "BB" are equal."""
    stored = [
        Stored(queue_offset=offset, properties=properties_of(**properties))
        for offset, properties in enumerate(
            [{"TAGS": "Aa"}, {"TAGS": "BB"}, {}, {"TAGS": "Aa"}, {"TAGS": "鍵"}]
        )
    ]

    batches = list(read_range(Blocks([block_of(stored), block_of(stored[1:2])]), RANGE, tags=["Aa", "鍵"]))

    assert offsets_of(batches) == [[0, 3, 4]]


@pytest.mark.parametrize(("choice", "body"), [("raw", b"no batch"), ("null", None)])
@pytest.mark.parametrize("columns", [("body",), ("body", "properties")])
def test_a_stored_batch_that_cannot_be_unwrapped_is_given_whatever_the_tags(choice, body, columns):
    broken = Stored(body=b"no batch", properties=properties_of(INNER_NUM="3"), sys_flag=INNER_BATCH)
    other = Stored(body=b"other", properties=properties_of(TAGS="b"), queue_offset=10)
    schema = select_columns(*columns)

    found = read_range(
        Blocks([block_of([broken, other])]), RANGE, tags=["a"], corrupt_body=choice, schema=schema
    )

    rows = [row for batch in found for row in batch.to_pylist()]
    assert [row["body"] for row in rows] == [body]
    assert all(tuple(row) == columns for row in rows)


@pytest.mark.process
def test_a_batch_without_bodies_is_not_cut_by_them_however_large_it_is():
    large = Stored(properties=properties_of(large="x" * 32_000))

    (batch,) = read_range(Blocks([block_of([large] * 600)]), RANGE, schema=select_columns("properties"))

    assert batch.num_rows == 600


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param(["bodi"], r"unknown column 'bodi' \(did you mean 'body'\?\)", id="unknown"),
        pytest.param(["body", "tags", "body"], "column 'body' is named twice", id="twice"),
        pytest.param([], "no column is named: name some of topic, brokerName", id="none"),
    ],
)
def test_columns_that_cannot_be_read_are_refused(names, message):
    with pytest.raises(ConfigError, match=message):
        select_columns(*names)


@pytest.mark.parametrize("columns", [("body",), ("body", "queueOffset")], ids="-".join)
def test_of_a_stored_batch_only_what_is_in_the_range_is_given(columns):
    stored = [inner_batch([b"a", b"b", b"c"], queue_offset=8), Stored(queue_offset=11)]
    schema = select_columns(*columns)

    (batch,) = read_range(Blocks([block_of(stored)]), QueueRange(QUEUE, 9, 11), schema=schema)

    assert batch.schema == schema
    assert batch.column("body").to_pylist() == [b"b", b"c"]


def test_what_stands_in_front_of_an_answer_that_is_torn_is_handed_out_before_the_error():
    async def torn():
        yield block_of([Stored(queue_offset=0), Stored(queue_offset=1)])
        raise ProtocolError("torn")

    class Torn(Blocks):
        def read_blocks(self, range_, **how):
            return torn()

    batches = read_range(Torn([]), RANGE)

    assert next(batches)["queueOffset"].to_pylist() == [0, 1]
    with pytest.raises(ProtocolError, match="torn"):
        next(batches)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(Stored(body=b"\x00\x00", sys_flag=INNER_BATCH, queue_offset=1), id="no-batch"),
        pytest.param(NotCompressed(body=b"\x00\x00", queue_offset=1), id="not-compressed"),
    ],
)
def test_bodies_that_cannot_be_read_are_what_the_caller_says(broken):
    def bodies(**how):
        return bodies_of(read_range(Blocks([block_of([Stored(queue_offset=0), broken])]), RANGE, **how))

    assert bodies(corrupt_body="raw") == [b"body", b"\x00\x00"]
    assert bodies(corrupt_body="null") == [b"body", None]
    with pytest.raises(CorruptBodyError, match="queue offset 1 of"):
        bodies()
    with pytest.raises(ConfigError, match="corrupt_body='none'"):
        bodies(corrupt_body="none")
