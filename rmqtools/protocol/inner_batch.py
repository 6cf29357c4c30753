"""A batch that the broker keeps as one message: topics whose queues are of the type BatchCQ (5.x).

The message's queue offset is its first message's; its body is what the request's was (``message_batch``).
Source of the rule: SendMessageProcessor.sendBatchMessage (broker), MessageDecoder.decodeMessage(MessageExt,
List) (Java client).
"""

import struct
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from rmqtools.errors import ProtocolError
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_INNER_NUM
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.protocol.message_batch import decode_batch
from rmqtools.protocol.messages import SYSFLAG_POSITION, decode_message

INNER_BATCH: Final = int(MessageSysFlag.INNER_BATCH_FLAG | MessageSysFlag.NEED_UNWRAP_FLAG)
_INT: Final = struct.Struct(">i")
INNER_BATCH_POSITION: Final = SYSFLAG_POSITION + _INT.size - 1  # in a stored message: the flag's last byte


def is_inner_batch(sys_flag: int) -> bool:
    """Whether a message holds others."""
    return sys_flag & INNER_BATCH == INNER_BATCH


def holds_inner_batch(data: bytes, starts: Iterable[int]) -> bool:
    """Whether one of the stored messages that begin there holds others.

    Looks at the last byte of each sys flag: to ask a message for its flag costs ten times as much.
    """
    position, inner_batch = INNER_BATCH_POSITION, INNER_BATCH
    for start in starts:  # noqa: SIM110 # any() takes half as long again, for every message that is read
        if data[start + position] & inner_batch == inner_batch:
            return True
    return False


def message_count(data: bytes, start: int) -> int:
    """How many queue offsets the stored message that begins at ``start`` takes.

    Raises:
        ProtocolError: a batch that does not say how many.
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
    """The messages in a message: itself; of a batch those in it, each with its own flag, properties and body.

    Raises:
        ProtocolError: a batch whose body is none.
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
