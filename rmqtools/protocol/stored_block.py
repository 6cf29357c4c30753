"""A block to the messages in it: those stored one by one, and those of batches that are kept as one."""

import struct

from rmqtools.errors import ProtocolError
from rmqtools.model.block import MessageBlock
from rmqtools.model.message import MessageExt
from rmqtools.protocol.inner_batch import holds_inner_batch, unwrap
from rmqtools.protocol.messages import decode_message, decode_messages, queue_offset_at


def decode_block_messages(block: MessageBlock) -> list[MessageExt]:
    """The messages of a block, by queue offset.

    A batch may hold messages in front of or behind the range that was read.

    Raises:
        ProtocolError: as of :func:`decode_stored`.
    """
    try:
        messages = decode_messages(block.buffer, starts=block.starts, broker_name=block.queue.broker_name)
    except ProtocolError:
        return [message for start in block.starts for message in decode_stored(block, start)]
    if not holds_inner_batch(block.buffer, block.starts):
        return messages
    return [inner for message in messages for inner in unwrap(message)]


def decode_stored(block: MessageBlock, start: int) -> list[MessageExt]:
    """The messages stored at a place of a block, by queue offset.

    Raises:
        ProtocolError: no message, or a body that cannot be read; the text names queue and queue offset.
    """
    try:
        return unwrap(decode_message(block.buffer, start, broker_name=block.queue.broker_name))
    except ProtocolError as error:
        raise ProtocolError(
            f"message at queue offset {_offset_text(block, start)} of {block.queue} cannot be decoded: "
            f"{error}; what is before and behind it can be read"
        ) from error


def _offset_text(block: MessageBlock, start: int) -> str:
    try:
        return str(queue_offset_at(block.buffer, start))
    except struct.error:
        return "unknown"
