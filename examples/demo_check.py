"""Compares the messages read with those written, and describes the first difference; pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from examples.demo_data import DemoRow


class QueueKey(NamedTuple):
    """A queue of the demo's topic."""

    broker_name: str
    queue_id: int


class StoredRow(NamedTuple):
    """A message that was read."""

    queue: QueueKey
    queue_offset: int
    row: DemoRow


class OffsetRange(NamedTuple):
    """A queue's offsets from the broker: the first one, and that of the next message."""

    minimum: int
    maximum: int

    def __len__(self) -> int:
        return self.maximum - self.minimum


def find_difference(
    written: Sequence[DemoRow],
    stored: Sequence[StoredRow],
    offsets: Mapping[QueueKey, OffsetRange],
    task_by_sequence: Mapping[int, int],
) -> str | None:
    """Compare messages, counts and order, and return the first difference; None if all are equal.

    Args:
        written: the rows of the data set.
        stored: the messages in the order they were read.
        offsets: the queues' offsets from the brokers.
        task_by_sequence: the write task of each ``seq``.
    """
    return (
        compare_messages(written, [one.row for one in stored])
        or compare_counts(stored, offsets)
        or compare_order(stored, task_by_sequence)
    )


def compare_messages(written: Sequence[DemoRow], read: Sequence[DemoRow]) -> str | None:
    """Compare as multisets: body, tags, keys and user properties of every row, and how often it occurs."""
    wanted, found = Counter(written), Counter(read)
    lacking, surplus = wanted - found, found - wanted
    partners = {row.sequence: row for row in reversed(surplus)}
    for row in lacking:
        partner = partners.get(row.sequence)
        if partner is not None and partner not in wanted and row not in found:
            return f"{_name(row)}: {_first_field(row, partner)}"
        return f"{_name(row)}: written {_times(wanted[row])}, read {_times(found[row])}"
    for row in surplus:
        return f"{_name(row)}: written {_times(wanted[row])}, read {_times(found[row])}"
    return None


def compare_counts(stored: Sequence[StoredRow], offsets: Mapping[QueueKey, OffsetRange]) -> str | None:
    """Compare the number of messages read with the brokers' maximum - minimum offset, in every queue."""
    read = Counter(one.queue for one in stored)
    for queue in sorted({*offsets, *read}):
        held = len(offsets.get(queue, OffsetRange(0, 0)))
        if read[queue] != held:
            return f"{_queue_name(queue)}: the broker holds {held} messages, {read[queue]} were read"
    return None


def compare_order(stored: Sequence[StoredRow], task_by_sequence: Mapping[int, int]) -> str | None:
    """Check the order in which every queue was read.

    Offsets must ascend. Within a write task ``seq`` must ascend too, because in the demo a task has one
    request on the wire at a time. Two tasks write at the same time, so there is no order between them. Rows
    without ``seq`` are equal, so they have no order.
    """
    last_offset: dict[QueueKey, int] = {}
    last_sequence: dict[tuple[QueueKey, int], int] = {}
    for queue, offset, row in stored:
        if offset <= last_offset.get(queue, -1):
            return f"{_queue_name(queue)}: offset {offset} was read after offset {last_offset[queue]}"
        last_offset[queue] = offset
        if (sequence := row.sequence) is None:
            continue
        stream = queue, task_by_sequence[sequence]
        if sequence <= last_sequence.get(stream, -1):
            return (
                f"{_queue_name(queue)}: at offset {offset} seq {sequence} follows "
                f"seq {last_sequence[stream]}, both written by task {stream[1]}"
            )
        last_sequence[stream] = sequence
    return None


def _first_field(written: DemoRow, read: DemoRow) -> str:
    if written.body != read.body:
        return f"body differs {_first_byte(written.body, read.body)}"
    name = next(name for name in DemoRow._fields if getattr(written, name) != getattr(read, name))
    if name == "properties":
        pair = min(set(written.properties) ^ set(read.properties))
        was, got = dict(written.properties).get(pair[0]), dict(read.properties).get(pair[0])
        return f"property {pair[0]!r} was written as {was!r}, read as {got!r}"
    return f"{name} written as {getattr(written, name)!r}, read as {getattr(read, name)!r}"


def _first_byte(written: bytes, read: bytes) -> str:
    pairs = enumerate(zip(written, read, strict=False))
    for place, (was, got) in pairs:
        if was != got:
            return f"at byte {place}: written as {was:#04x}, read as {got:#04x}"
    return f"in length: {len(written)} bytes written, {len(read)} read"


def _name(row: DemoRow) -> str:
    if row.sequence is not None:
        return f"row with seq {row.sequence}"
    return f"row without seq, body {row.body[:20]!r} ({len(row.body)} bytes), tags {row.tags!r}"


def _queue_name(queue: QueueKey) -> str:
    return f"queue {queue.queue_id} of {queue.broker_name}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
