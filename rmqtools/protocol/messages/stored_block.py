"""Decodes a block into messages, and handles broken ones as its reader requests."""

from collections.abc import Iterable, Iterator

from rmqtools.model.block import CorruptBody, MessageBlock
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.sys_flag import clear_compressed_flag
from rmqtools.protocol.messages.corrupt_message import CorruptMessage, raw_message
from rmqtools.protocol.messages.found import Found, decode_one, decode_portions, decode_undecompressed
from rmqtools.protocol.messages.inner_batch import holds_inner_batch


def decode_block_portions(block: MessageBlock, *, corrupt_body: CorruptBody = "fail") -> Iterator[Found]:
    """Yield the messages of a block, by queue offset, in portions that take little memory and time.

    There is nearly always one portion. An inner batch may contain messages before or after the range that was
    read.

    Args:
        block: the block to decode.
        corrupt_body: handling of messages that cannot be read, see :data:`CorruptBody`.

    Raises:
        CorruptBodyError: a body that cannot be read, and ``corrupt_body`` is ``fail``.
        ProtocolError: a message whose head is broken, and ``corrupt_body`` is ``fail``.
    """
    limit = block.max_decompressed_bytes
    for found in decode_portions(block.buffer, block.starts, block.queue, max_body_bytes=limit):
        if found.is_whole:
            yield found
            continue
        if found.errors and corrupt_body == "fail":
            raise found.errors[0]
        yield found._replace(messages=_handle_corrupt(found.messages, block.queue, corrupt_body))


def decode_stored(block: MessageBlock, start: int, *, corrupt_body: CorruptBody = "fail") -> list[MessageExt]:
    """Return the messages stored at a place of a block, by queue offset.

    Raises:
        CorruptBodyError: a body that cannot be read, and ``corrupt_body`` is ``fail``.
        ProtocolError: its head is broken, whatever ``corrupt_body`` is; the text names queue and offset.
    """
    found = decode_one(block.buffer, start, block.queue, max_body_bytes=block.max_decompressed_bytes)
    return _handle_corrupt(found, block.queue, corrupt_body)


def decode_bodiless(block: MessageBlock, start: int, *, corrupt_body: CorruptBody) -> list[MessageExt]:
    """Return the messages stored at a place of a block, for readers that do not use their bodies.

    Bodies are not decompressed and stay as stored, except that of an inner batch. The other fields are those
    after decompression.

    Raises:
        CorruptBodyError: an inner batch that cannot be taken apart, and ``corrupt_body`` is ``fail``.
        ProtocolError: its head is broken; the text names queue and offset.
    """
    if holds_inner_batch(block.buffer, (start,)):
        return decode_stored(block, start, corrupt_body=corrupt_body)
    message = decode_undecompressed(block.buffer, start, block.queue)
    return (
        [message.with_values(sys_flag=clear_compressed_flag(message.sys_flag))] if message.body else [message]
    )


def _handle_corrupt(
    messages: Iterable[MessageExt], queue: MessageQueue, choice: CorruptBody
) -> list[MessageExt]:
    found: list[MessageExt] = []
    for message in messages:
        if choice == "fail" and isinstance(message, CorruptMessage):
            raise message.error_in(queue)
        found.append(raw_message(message) if choice == "raw" else message)
    return found
