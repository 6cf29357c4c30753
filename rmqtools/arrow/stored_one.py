"""One stored message to the messages in it: itself, or those of a batch that is kept as one."""

import struct

from rmqtools.errors import ProtocolError
from rmqtools.model.block import MessageBlock
from rmqtools.model.message import MessageExt
from rmqtools.protocol.inner_batch import unwrap
from rmqtools.protocol.messages import decode_message, queue_offset_at


def decode_stored(block: MessageBlock, start: int) -> list[MessageExt]:
    """The messages stored at a place of a block, by queue offset.

    Raises:
        ProtocolError: no message, or a body that cannot be read; the text names queue and queue offset.
    """
    try:
        return unwrap(decode_message(block.buffer, start))
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
