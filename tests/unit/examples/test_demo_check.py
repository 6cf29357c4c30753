"""The demo's comparison sees every kind of difference, and names the first."""

import pytest

from examples.demo_check import (
    OffsetRange,
    QueueKey,
    StoredRow,
    compare_counts,
    compare_messages,
    compare_order,
    find_difference,
)
from examples.demo_data import DemoRow

A0, B0 = QueueKey("broker-a", 0), QueueKey("broker-b", 0)


def row(sequence: int, body: bytes = b"body", tags: str | None = "t", **properties: str) -> DemoRow:
    return DemoRow(body, tags, "k", tuple(sorted({"seq": f"{sequence:05d}", **properties}.items())))


BARE = DemoRow(b"body", None, None, ())
WRITTEN = [row(0), row(1, colour="blue"), row(2), BARE, BARE]


def stored(queue: QueueKey, *sequences: int, first_offset: int = 0) -> list[StoredRow]:
    return [StoredRow(queue, offset, row(number)) for offset, number in enumerate(sequences, first_offset)]


def test_the_same_rows_in_another_order_are_equal():
    assert compare_messages(WRITTEN, WRITTEN[::-1]) is None


@pytest.mark.parametrize(
    ("read", "text"),
    [
        pytest.param(
            row(2, b"bodx"), "seq 2: body differs at byte 3: written as 0x79, read as 0x78", id="byte"
        ),
        pytest.param(row(2, b"bod"), "seq 2: body differs in length: 4 bytes written, 3 read", id="length"),
        pytest.param(row(2, tags="u"), "seq 2: tags written as 't', read as 'u'", id="tags"),
        pytest.param(row(2, tags=None), "seq 2: tags written as 't', read as None", id="null-tags"),
        pytest.param(row(2)._replace(keys=""), "seq 2: keys written as 'k', read as ''", id="empty-keys"),
        pytest.param(row(2, extra="x"), "property 'extra' was written as None, read as 'x'", id="property"),
        pytest.param(BARE, "seq 2: written once, read 0 times", id="another-row"),
        pytest.param(
            row(1, colour="blue"), "seq 2: written once, read 0 times", id="a-row-twice-for-another"
        ),
    ],
)
def test_a_changed_row_is_named_with_what_changed(read, text):
    difference = compare_messages(WRITTEN, [*WRITTEN[:2], read, *WRITTEN[3:]])

    assert difference is not None
    assert text in difference


@pytest.mark.parametrize(
    ("read", "text"),
    [
        pytest.param(WRITTEN[1:], "row with seq 0: written once, read 0 times", id="lost"),
        pytest.param([*WRITTEN, row(1)], "row with seq 1: written 0 times, read once", id="surplus"),
        pytest.param([*WRITTEN, row(2)], "row with seq 2: written once, read 2 times", id="duplicate"),
        pytest.param(
            WRITTEN[:4], "row without seq, body b'body' (4 bytes), tags None: written 2 times", id="bare"
        ),
        pytest.param([], "row with seq 0: written once, read 0 times", id="nothing-read"),
    ],
)
def test_lost_and_surplus_rows_are_named_with_their_numbers(read, text):
    assert text in str(compare_messages(WRITTEN, read))


@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        pytest.param(
            {A0: OffsetRange(0, 3)}, "0 of broker-a: the broker holds 3 messages, 2 were read", id="more"
        ),
        pytest.param(
            {A0: OffsetRange(1, 2)}, "0 of broker-a: the broker holds 1 messages, 2 were read", id="less"
        ),
        pytest.param({}, "0 of broker-a: the broker holds 0 messages, 2 were read", id="unknown-queue"),
        pytest.param(
            {A0: OffsetRange(0, 2), B0: OffsetRange(0, 1)},
            "0 of broker-b: the broker holds 1",
            id="unread-queue",
        ),
    ],
)
def test_another_number_than_the_broker_holds_is_named(offsets, text):
    assert text in str(compare_counts(stored(A0, 0, 1), offsets))


def test_as_many_as_the_broker_holds_is_no_difference():
    assert (
        compare_counts(stored(A0, 0, 1, first_offset=5), {A0: OffsetRange(5, 7), B0: OffsetRange(3, 3)})
        is None
    )


def test_two_tasks_may_mix_in_a_queue():
    assert compare_order(stored(A0, 0, 100, 1, 101), {0: 0, 1: 0, 100: 1, 101: 1}) is None


def test_a_task_may_go_on_in_another_queue():
    assert compare_order([*stored(A0, 2, 3), *stored(B0, 0, 1)], {0: 0, 1: 0, 2: 0, 3: 0}) is None


def test_rows_without_sequence_have_no_order():
    assert compare_order([StoredRow(A0, offset, BARE) for offset in range(3)], {}) is None


@pytest.mark.parametrize("sequences", [(0, 2, 1), (0, 1, 1)], ids=["overtaken", "twice"])
def test_a_sequence_that_does_not_ascend_is_named(sequences):
    difference = compare_order(stored(A0, *sequences), {0: 7, 1: 7, 2: 7})

    assert difference == (
        f"queue 0 of broker-a: at offset 2 seq 1 follows seq {sequences[1]}, both written by task 7"
    )


def test_offsets_that_do_not_ascend_are_named():
    mixed = [*stored(A0, 0, first_offset=4), *stored(A0, 1, first_offset=3)]

    assert compare_order(mixed, {0: 0, 1: 0}) == "queue 0 of broker-a: offset 3 was read after offset 4"


def test_find_difference_looks_in_all_three_ways():
    written, tasks = [row(0), row(1)], {0: 0, 1: 0}
    whole = {A0: OffsetRange(0, 2)}

    assert find_difference(written, stored(A0, 0, 1), whole, tasks) is None
    assert "seq 1" in str(find_difference(written, stored(A0, 0, 2), whole, tasks))
    assert "holds 3" in str(find_difference(written, stored(A0, 0, 1), {A0: OffsetRange(0, 3)}, tasks))
    assert "follows" in str(find_difference(written, stored(A0, 1, 0), whole, tasks))
