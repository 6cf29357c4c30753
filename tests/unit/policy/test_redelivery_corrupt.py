"""What becomes of messages whose body cannot be read."""

import pytest

from rmqtools.model.message import MessageExt
from rmqtools.policy.redelivery import listener_batches, listener_count, split_exhausted, tried_again
from rmqtools.protocol.messages.corrupt_message import corrupt_message
from tests.unit.policy.test_redelivery import stored


def messages(kinds: str) -> list[MessageExt]:
    """One for each letter: g for a good message, c for a corrupt one."""
    found = [stored().with_values(queue_offset=offset) for offset, _ in enumerate(kinds)]
    return [
        corrupt_message(message, "torn") if kind == "c" else message
        for kind, message in zip(kinds, found, strict=True)
    ]


@pytest.mark.parametrize(
    ("kinds", "size", "batches"),
    [
        ("ggggg", 2, [[0, 1], [2, 3], [4]]),
        ("ggcgg", 4, [[0, 1], [2], [3, 4]]),
        ("cg", 9, [[0], [1]]),
        ("gccg", 9, [[0], [1], [2], [3]]),
        ("gcg", 1, [[0], [1], [2]]),
        ("", 3, []),
    ],
)
def test_a_listener_gets_a_corrupt_message_alone(kinds, size, batches):
    found = listener_batches(messages(kinds), size)

    assert [[message.queue_offset for message in batch] for batch in found] == batches


def test_a_queue_in_order_hands_out_as_many_as_stand_in_front_of_a_corrupt_message():
    assert [listener_count(messages(kinds)) for kinds in ("ggg", "gcg", "cgg", "")] == [3, 1, 1, 0]


def test_in_order_a_corrupt_message_is_tried_too_often_at_once():
    again, exhausted = split_exhausted(messages("gcg"), 2**31 - 1)

    assert [(message.queue_offset, message.reconsume_times) for message in again] == [(0, 1), (2, 1)]
    assert [message.queue_offset for message in exhausted] == [1]


def test_one_more_try_is_counted_of_a_corrupt_message_too():
    (broken,) = messages("c")

    assert tried_again(broken).reconsume_times == broken.reconsume_times + 1
    assert tried_again(broken).body_error is not None
