import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.selectors import (
    SelectMessageQueueByHash,
    SelectMessageQueueByMachineRoom,
    java_hash_code,
    java_index,
)

MESSAGE = Message("T", b"x")
ARGS = st.text() | st.booleans() | st.integers(-(2**63), 2**63 - 1)
ROOMS = [MessageQueue("T", broker, queue_id) for broker in ("r1-a", "r10-a", "r1-b") for queue_id in range(2)]
ROOM_1 = [ROOMS[0], ROOMS[1], ROOMS[4], ROOMS[5]]


def queues(count: int) -> list[MessageQueue]:
    return [MessageQueue("T", "a", queue_id) for queue_id in range(count)]


def signed(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


@given(st.text(st.characters(codec="utf-16")))
def test_text_hashes_as_the_sum_in_the_documentation_of_string(text):
    """s[0]*31^(n-1) + s[1]*31^(n-2) + ... + s[n-1], over UTF-16 units."""
    data = text.encode("utf-16-le")
    units = [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]
    powers = reversed(range(len(units)))

    assert java_hash_code(text) == signed(
        sum(u * 31**power for u, power in zip(units, powers, strict=True)), 32
    )


@pytest.mark.parametrize(
    ("value", "hash_code"),
    [
        ("", 0),
        ("polygenelubricants", -(2**31)),
        ("😀", 1772899),
        (True, 1231),
        (False, 1237),
        (7, 7),
        (-7, -7),
        (2**31 - 1, 2**31 - 1),
        (-(2**31), -(2**31)),
        (2**31, -(2**31)),
        (-(2**31) - 1, -(2**31)),
        (2**63 - 1, -(2**31)),
        (-(2**63), -(2**31)),
        ((1 << 32) | 1_500_000_001, 1_500_000_000),  # above a third of 32 bits, and not negative
    ],
)
def test_values_hash_as_in_java(value, hash_code):
    assert java_hash_code(value) == hash_code


@pytest.mark.parametrize("value", [None, 1.0, b"a", 2**63, -(2**63) - 1, ("a",)], ids=repr)
def test_what_java_and_python_hash_differently_is_refused(value):
    with pytest.raises(MessageRejectedError, match="cannot hash"):
        java_hash_code(value)


@pytest.mark.parametrize(
    ("hash_code", "count", "index"), [(-7, 3, 1), (7, 3, 1), (-(2**31), 7, 2), (-1, 1, 0)]
)
def test_a_negative_hash_counts_as_its_remainder_without_sign(hash_code, count, index):
    assert java_index(hash_code, count) == index


@given(ARGS, st.integers(1, 20))
def test_equal_args_give_the_same_queue_also_after_pickling(arg, count):
    selector = SelectMessageQueueByHash()

    assert pickle.loads(pickle.dumps(selector))(queues(count), MESSAGE, arg) == selector(
        queues(count), MESSAGE, arg
    )


@given(ARGS)
def test_a_machine_room_takes_queues_of_its_own_brokers_only(arg):
    index = java_index(java_hash_code(arg), len(ROOM_1))

    assert SelectMessageQueueByMachineRoom("r1")(ROOMS, MESSAGE, arg) == ROOM_1[index]


def test_without_arg_it_is_the_first_queue_of_the_room():
    assert SelectMessageQueueByMachineRoom("r10")(ROOMS, MESSAGE, None) == ROOMS[2]


@pytest.mark.parametrize("room", ["r", "r2", "r1-a", ""])
def test_a_room_without_broker_is_refused_with_the_brokers_there_are(room):
    with pytest.raises(MessageRejectedError, match=r"\['r1-a', 'r1-b', 'r10-a'\]"):
        SelectMessageQueueByMachineRoom(room)(ROOMS, MESSAGE, None)
