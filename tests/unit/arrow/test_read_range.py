"""Ranges as batches: one per block, cut where bodies have grown."""

from collections.abc import Iterator, Sequence

from rmqtools import MessageBlock, QueueRange
from rmqtools.arrow import read_range
from tests.unit.arrow.stored_messages import COMPRESSED, QUEUE, Stored, block_of

RANGE = QueueRange(QUEUE, 0, 100)


class Blocks:
    """Hands out blocks as a client does; knows whether it was left to the end, or closed."""

    def __init__(self, blocks: Sequence[MessageBlock]) -> None:
        self.blocks = blocks
        self.asked: dict[str, object] = {}
        self.closed = False

    def read_blocks(self, range_: QueueRange, *, max_messages: int, max_bytes: int) -> Iterator[MessageBlock]:
        self.asked = {"range": range_, "max_messages": max_messages, "max_bytes": max_bytes}
        try:
            yield from self.blocks
        finally:
            self.closed = True


def test_blocks_are_asked_for_by_the_thousand_and_each_becomes_a_batch():
    client = Blocks([block_of([Stored()] * 3), block_of([Stored()])])

    batches = list(read_range(client, RANGE))

    assert [batch.num_rows for batch in batches] == [3, 1]
    assert client.asked["range"] == RANGE
    assert client.asked["max_messages"] >= 1000


def test_a_batch_that_grew_by_decompression_is_cut_and_loses_nothing():
    large = [
        Stored(body=bytes([number]) * 9_000_000, sys_flag=COMPRESSED, queue_offset=number)
        for number in range(5)
    ]

    batches = list(read_range(Blocks([block_of([*large, Stored(queue_offset=5)])]), RANGE))

    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [batch.num_rows for batch in batches] == [1, 2, 3]
    assert [row["queueOffset"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row["body"][:1] for row in rows[:5]] == [b"\x00", b"\x01", b"\x02", b"\x03", b"\x04"]


def test_leaving_early_closes_the_read():
    client = Blocks([block_of([Stored()])] * 3)
    batches = read_range(client, RANGE)
    next(batches)

    batches.close()

    assert client.closed
