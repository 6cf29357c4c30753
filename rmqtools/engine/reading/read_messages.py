"""Decodes the messages of a range on the loop, block by block."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.reading.range_filter import is_wanted
from rmqtools.engine.reading.range_read import RangeReader
from rmqtools.errors import ProtocolError
from rmqtools.log import get_logger
from rmqtools.model.block import CorruptBody
from rmqtools.model.group import SubscriptionData
from rmqtools.model.message import MessageExt
from rmqtools.model.names import without_this_namespace
from rmqtools.model.queue import QueueRange
from rmqtools.protocol.messages.found import Found
from rmqtools.protocol.messages.stored_block import decode_block_portions

log = get_logger(__name__)


async def read_messages(
    client: ClientCore,
    range_: QueueRange,
    *,
    max_messages: int,
    max_bytes: int,
    read_filter: SubscriptionData | None = None,
    fail_on_data_loss: bool = True,
    namespace: str | None = None,
    corrupt_body: CorruptBody = "fail",
) -> AsyncGenerator[list[MessageExt], None]:
    """See :meth:`rmqtools.aio.Client.read_messages`. Without ``namespace``, topics keep theirs.

    On an error, the messages of earlier answers are handed out first.
    """
    reader = RangeReader(client, range_, read_filter=read_filter, fail_on_data_loss=fail_on_data_loss)
    messages: list[MessageExt] = []
    size_bytes = 0
    pulls = reader.blocks(max_messages=1, max_bytes=max_bytes)  # blocks of one pull are not copied
    try:
        async with aclosing(pulls):
            async for block in pulls:
                rest = len(block)
                for portion in decode_block_portions(block, corrupt_body=corrupt_body):
                    found = _wanted(_with_losses_logged(portion), range_, read_filter)
                    messages += _with_plain_topics(found, namespace)
                    rest -= portion.decoded
                    size_bytes += 0 if rest else len(block.buffer)
                    is_large = rest or len(messages) >= max_messages or size_bytes >= max_bytes
                    if messages and is_large:  # with a rest: of bodies that grow
                        yield messages
                        messages, size_bytes = [], 0
                        await asyncio.sleep(0)
    except ProtocolError:
        if messages:
            yield messages
        raise
    if messages:
        yield messages


def _with_losses_logged(found: Found) -> list[MessageExt]:
    """Return the messages; errors of passed-over ones are logged."""
    for error in found.errors:
        log.warning("message_passed_over", reason=str(error))
    return found.messages


def _wanted(
    messages: list[MessageExt], range_: QueueRange, read_filter: SubscriptionData | None
) -> list[MessageExt]:
    found = _inside(messages, range_)
    if read_filter is None:
        return found
    return [message for message in found if is_wanted(message, read_filter)]


def _with_plain_topics(messages: list[MessageExt], namespace: str | None) -> list[MessageExt]:
    """Return the messages with plain topics, for a client with a namespace."""
    if not namespace:
        return messages
    return [message.with_topic(without_this_namespace(message.topic, namespace)) for message in messages]


def _inside(messages: list[MessageExt], range_: QueueRange) -> list[MessageExt]:
    """Remove messages of stored batches that are outside the range."""
    if messages and range_.begin <= messages[0].queue_offset and messages[-1].queue_offset < range_.end:
        return messages
    return [message for message in messages if range_.begin <= message.queue_offset < range_.end]
