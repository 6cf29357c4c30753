"""Decodes the messages of an answer or a block: unwraps stored batches, separates broken messages.

A message is broken in one of three ways:

- its body: the message is a :class:`CorruptMessage`;
- its head (magic number, a length beyond the total size, a host): it is left out, and an error names it;
- its total size: nothing behind it can be found (``message_starts``).

Messages are decoded in portions: a few stored kilobytes may hold gigabytes, and one portion must neither take
that memory nor block the event loop.
Source of the rule: PullAPIWrapper.processPullResult (Java client), which takes batches apart. Ours: Java
silently drops a message whose head is broken, together with all that follows it in the answer.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rmqtools.errors import ProtocolError
from rmqtools.model.block import MAX_DECOMPRESSED_BYTES
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.messages.corrupt_message import corrupt_message
from rmqtools.protocol.messages.inner_batch import holds_inner_batch, unwrap
from rmqtools.protocol.messages.stored import decode_message, decode_messages, queue_offset_at

PORTION_BYTES: Final = 1024 * 1024  # of decompressed bodies; a portion ends with the body that reaches it
PORTION_MESSAGES: Final = 8192  # of stored batches; a portion ends with the batch that reaches it


class Found(NamedTuple):
    """Messages found, and those that cannot be read.

    Attributes:
        messages: by queue offset.
        errors: one for each message whose head is broken; the text names queue and queue offset.
        broken: where those begin.
        is_whole: no message is broken in any way.
        decoded: how many stored messages were decoded; fewer than asked for if there are more portions.
    """

    messages: list[MessageExt]
    errors: Sequence[ProtocolError] = ()
    is_whole: bool = True
    broken: Sequence[int] = ()
    decoded: int = 0


def decode_found(
    data: bytes,
    starts: Sequence[int],
    queue: MessageQueue,
    *,
    unwraps: bool = True,
    decompresses: bool = True,
    max_body_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Found:
    """Decode the first portion of the messages that begin at ``starts``: nearly always all of them.

    Args:
        data: the stored messages.
        starts: where they begin.
        queue: the queue they are in.
        unwraps: whether batches stored as one message are taken apart.
        decompresses: whether bodies are decompressed; else all messages are one portion.
        max_body_bytes: the size up to which a body is decompressed.
    """
    try:
        messages = decode_messages(
            data,
            starts=starts,
            decompress_bodies=decompresses,
            max_body_bytes=max_body_bytes,
            max_grown_bytes=PORTION_BYTES,
            broker_name=queue.broker_name,
        )
        if unwraps and holds_inner_batch(data, starts):
            return _unwrapped(messages)
        return Found(messages, decoded=len(messages))
    except ProtocolError:
        if decompresses:
            return _decode_each(data, starts, queue, unwraps=unwraps, max_body_bytes=max_body_bytes)
        return _decode_heads(data, starts, queue)


def decode_single(data: bytes, *, max_body_bytes: int, broker_name: str = "") -> MessageExt:
    """Decode a single message; one with a broken body becomes a :class:`CorruptMessage`.

    Raises:
        ProtocolError: its head is broken.
    """
    try:
        return decode_message(data, max_body_bytes=max_body_bytes, broker_name=broker_name)
    except ProtocolError as error:
        return corrupt_message(decode_message(data, decompress_body=False, broker_name=broker_name), error)


def decode_portions(
    data: bytes, starts: Sequence[int], queue: MessageQueue, *, max_body_bytes: int
) -> Iterator[Found]:
    """Decode all messages that begin at ``starts``, portion by portion; at least one portion."""
    done = 0
    while True:
        found = decode_found(data, starts[done:] if done else starts, queue, max_body_bytes=max_body_bytes)
        done += found.decoded
        yield found
        if done >= len(starts):
            return


def decode_one(
    data: bytes, start: int, queue: MessageQueue, *, unwraps: bool = True, max_body_bytes: int
) -> list[MessageExt]:
    """Return the messages stored at one place, by queue offset.

    Raises:
        ProtocolError: its head is broken; the text names queue and queue offset.
    """
    try:
        message = decode_message(data, start, max_body_bytes=max_body_bytes, broker_name=queue.broker_name)
        return unwrap(message) if unwraps else [message]
    except ProtocolError as error:
        return [_decode_head(data, start, queue, error)]


def _unwrapped(stored: Sequence[MessageExt]) -> Found:
    messages: list[MessageExt] = []
    for count, message in enumerate(stored, 1):
        messages += unwrap(message)
        if len(messages) >= PORTION_MESSAGES:
            return Found(messages, decoded=count)
    return Found(messages, decoded=len(stored))


def _decode_head(data: bytes, start: int, queue: MessageQueue, why: ProtocolError) -> MessageExt:
    """Return a message of which the body cannot be read."""
    return corrupt_message(decode_undecompressed(data, start, queue), why)


def decode_undecompressed(data: bytes, start: int, queue: MessageQueue) -> MessageExt:
    """Return the message stored at one place, with its body and sys flag as stored.

    Raises:
        ProtocolError: its head is broken; the text names queue and queue offset.
    """
    try:
        return decode_message(data, start, decompress_body=False, broker_name=queue.broker_name)
    except ProtocolError as error:
        raise ProtocolError(
            f"message at queue offset {_offset_text(data, start)} of {queue} cannot be decoded: {error}; "
            "what is before and behind it can be read"
        ) from error


def _decode_each(
    data: bytes, starts: Sequence[int], queue: MessageQueue, *, unwraps: bool, max_body_bytes: int
) -> Found:
    messages: list[MessageExt] = []
    errors: list[ProtocolError] = []
    broken: list[int] = []
    room, count = PORTION_BYTES, 0
    for count, start in enumerate(starts, 1):  # noqa: B007 - returned below
        try:
            found = decode_one(data, start, queue, unwraps=unwraps, max_body_bytes=max_body_bytes)
        except ProtocolError as error:
            errors.append(error)
            broken.append(start)
            continue
        messages += found
        room -= sum(map(worked_bytes, found))
        if room <= 0 or len(messages) >= PORTION_MESSAGES:
            break
    return Found(messages, errors, is_whole=False, broken=broken, decoded=count)


def _decode_heads(data: bytes, starts: Sequence[int], queue: MessageQueue) -> Found:
    messages: list[MessageExt] = []
    errors: list[ProtocolError] = []
    broken: list[int] = []
    for start in starts:
        try:
            messages.append(decode_undecompressed(data, start, queue))
        except ProtocolError as error:
            errors.append(error)
            broken.append(start)
    return Found(messages, errors, is_whole=False, broken=broken, decoded=len(starts))


def worked_bytes(message: MessageExt) -> int:
    """Return the bytes decompressed, at most, for a message."""
    if message.body_error is None:
        return len(message.body)
    return getattr(message.body_error, "max_bytes", len(message.body_error.raw))


def _offset_text(data: bytes, start: int) -> str:
    try:
        return str(queue_offset_at(data, start))
    except struct.error:
        return "unknown"
