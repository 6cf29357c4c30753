"""Queue selectors: let the caller choose the queue of a message.

A selector is any callable ``(queues, message, arg) -> queue``; these are the usual ones. All are pure.
"""

from collections.abc import Callable, Sequence
from typing import Any

from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record

MessageQueueSelector = Callable[[Sequence[MessageQueue], Message, Any], MessageQueue]
_INT32, _INT64 = 1 << 32, 1 << 64
_TRUE_HASH, _FALSE_HASH = 1231, 1237


@record(kw_only=False)
class SelectMessageQueueByHash:
    """Selects the queue by Java's hash of ``arg``: equal args give equal queues in every client.

    ``arg`` is text, a bool or an int (hashed as Java's Integer where it fits, else as Long).
    Source of the rule: SelectMessageQueueByHash (Java client).
    """

    def __call__(self, queues: Sequence[MessageQueue], message: Message, arg: Any) -> MessageQueue:
        """See the class."""
        return queues[java_index(java_hash_code(arg), len(queues))]


@record(kw_only=False)
class SelectMessageQueueByMachineRoom:
    """Selects among the queues of brokers whose name begins with ``room`` and ``-``, by the hash of ``arg``.

    Our own rule (upstream's selector of this name returns null). Without ``arg`` the first queue of the room.
    """

    room: str

    def __call__(self, queues: Sequence[MessageQueue], message: Message, arg: Any) -> MessageQueue:
        """See the class."""
        in_room = [queue for queue in queues if queue.broker_name.startswith(f"{self.room}-")]
        if not in_room:
            names = sorted({queue.broker_name for queue in queues})
            raise MessageRejectedError(f"no broker of {names} is in machine room {self.room!r}")
        return in_room[0 if arg is None else java_index(java_hash_code(arg), len(in_room))]


def java_hash_code(value: object) -> int:
    """Java's ``hashCode`` of a String, Boolean, Integer or Long, as a signed 32-bit number.

    Raises:
        MessageRejectedError: a value whose hash in Java cannot be computed here.
    """
    if isinstance(value, str):
        return _string_hash(value)
    if isinstance(value, bool):
        return _TRUE_HASH if value else _FALSE_HASH
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value if -(2**31) <= value < 2**31 else _long_hash(value)
    raise MessageRejectedError(f"cannot hash {value!r}: want text, a bool or a 64-bit int")


def java_index(hash_code: int, count: int) -> int:
    """``Math.abs(hash % count)``: Java's remainder has the sign of the hash."""
    return abs(hash_code) % count


def _string_hash(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) % _INT32
    return _signed(result)


def _long_hash(value: int) -> int:
    unsigned = value % _INT64
    return _signed((unsigned ^ unsigned >> 32) % _INT32)


def _signed(value: int) -> int:
    return value - _INT32 if value >= _INT32 // 2 else value
