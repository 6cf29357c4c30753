"""Inner batches: batches that a broker stores as one message, in topics with the queue type BatchCQ (5.x).

The stored message has the queue offset of its first message, and the request's body (``message_batch``).
Source of the rule: SendMessageProcessor.sendBatchMessage (broker), MessageDecoder.decodeMessage(MessageExt,
List) (Java client).

A stored inner batch has several queue offsets: a range that begins in its middle still needs it.
"""

import struct
from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter
from typing import Final

from rmqtools.errors import ProtocolError
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_INNER_NUM
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.protocol.messages.batch import decode_batch
from rmqtools.protocol.messages.stored import SYSFLAG_POSITION, decode_message

INNER_BATCH: Final = int(MessageSysFlag.INNER_BATCH_FLAG | MessageSysFlag.NEED_UNWRAP_FLAG)
_INT: Final = struct.Struct(">i")
INNER_BATCH_POSITION: Final = SYSFLAG_POSITION + _INT.size - 1  # in a stored message: the flag's last byte


def is_inner_batch(sys_flag: int) -> bool:
    """Return whether a message contains others."""
    return sys_flag & INNER_BATCH == INNER_BATCH


_sys_flag_of = attrgetter("sys_flag")


def has_sys_flag(messages: Iterable[MessageExt], bits: int) -> bool:
    """Return whether one of these messages has one of these bits in its flag; nearly always all are alike."""
    return any(sys_flag & bits for sys_flag in set(map(_sys_flag_of, messages)))


def holds_inner_batch(data: bytes, starts: Iterable[int]) -> bool:
    """Return whether one of the stored messages at ``starts`` contains others.

    Checks the last byte of each sys flag, because decoding a message for its flag costs ten times as much.
    """
    position, inner_batch = INNER_BATCH_POSITION, INNER_BATCH
    for start in starts:  # noqa: SIM110 # any() takes half as long again, for every message that is read
        if data[start + position] & inner_batch == inner_batch:
            return True
    return False


def message_count(data: bytes, start: int) -> int:
    """Return the number of queue offsets of the stored message at ``start``.

    Raises:
        ProtocolError: a batch without its number of messages.
    """
    if not is_inner_batch(_INT.unpack_from(data, start + SYSFLAG_POSITION)[0]):
        return 1
    message = decode_message(data, start, decompress_body=False)
    text = message.properties.get(PROPERTY_INNER_NUM, "")
    if not text.isdecimal():
        raise ProtocolError(
            f"batch at queue offset {message.queue_offset} of topic {message.topic!r}: "
            f"{PROPERTY_INNER_NUM} is {text!r}"
        )
    return int(text)


def unwrap(message: MessageExt) -> list[MessageExt]:
    """Return the messages in a batch, each with its own flag, properties and body; else the message itself.

    Raises:
        ProtocolError: a batch with an invalid body.
    """
    if not is_inner_batch(message.sys_flag):
        return [message]
    return [
        replace(
            message,
            queue_offset=message.queue_offset + number,
            flag=inner.flag,
            body=inner.body,
            properties=inner.properties,
        )
        for number, inner in enumerate(decode_batch(message.body))
    ]
