"""The native client's hash of sharding keys."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools import Message, MessageQueue
from rmqtools.compat.sharding import native_hash, select_by_native_hash


@pytest.mark.parametrize(
    ("key", "number"),
    [
        ("", 6142509188972423790),
        ("a", 4993892634952068459),
        ("order-1", 1888478096483860501),
        ("ключ", 1883157536234053508),
        ("a long sharding key 0123456789", 12150539336610824553),
    ],
)
def test_the_hash_of_a_key_is_that_of_libstdc(key: str, number: int) -> None:
    """Made by ``std::_Hash_bytes`` of libstdc++ on x86-64."""
    assert native_hash(key.encode()) == number


@given(st.binary(max_size=40))
def test_all_keys_hash_as_in_the_library_of_this_machine(data: bytes) -> None:
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:  # only Linux has it: the vectors above hold elsewhere
        return
    hash_bytes = library["_ZSt11_Hash_bytesPKvmm"]
    hash_bytes.restype = ctypes.c_size_t
    hash_bytes.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t]

    assert native_hash(data) == hash_bytes(data, len(data), 0xC70F6907)


def test_a_key_selects_the_queue_of_its_hash() -> None:
    queues = [MessageQueue("orders", "broker-a", number) for number in range(7)]

    assert (
        select_by_native_hash(queues, Message("orders", b"1"), "order-1") is queues[1888478096483860501 % 7]
    )
