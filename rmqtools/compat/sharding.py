"""The queue of a sharding key, as the native client chooses it: keys keep their queues when a producer moves.

Source of the rule: SelectMessageQueueInner (C++ client) takes ``std::hash<std::string>``. In libstdc++ on 64
bits that is ``_Hash_bytes``: MurmurHash64A with the seed 0xc70f6907. Java's selectors use another hash.
"""

from collections.abc import Sequence
from typing import Any

from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue

_SEED = 0xC70F6907
_FACTOR = 0xC6A4A7935BD1E995
_BITS = 0xFFFF_FFFF_FFFF_FFFF


def select_by_native_hash(queues: Sequence[MessageQueue], message: Message, key: Any) -> MessageQueue:
    """Return the queue of a sharding key (text)."""
    return queues[native_hash(key.encode()) % len(queues)]


def native_hash(data: bytes) -> int:
    """``std::hash<std::string>`` of libstdc++ on machines of 64 bits."""
    value = _SEED ^ (len(data) * _FACTOR & _BITS)
    whole = len(data) & ~7
    for start in range(0, whole, 8):
        word = int.from_bytes(data[start : start + 8], "little") * _FACTOR & _BITS
        word = (word ^ word >> 47) * _FACTOR & _BITS
        value = (value ^ word) * _FACTOR & _BITS
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _BITS
    value = (value ^ value >> 47) * _FACTOR & _BITS
    return value ^ value >> 47
