"""Messages of a range, decoded on the loop block by block."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from rmqtools.engine.client import ClientCore
from rmqtools.engine.range_read import RangeReader
from rmqtools.model.group import SubscriptionData
from rmqtools.model.message import MessageExt
from rmqtools.model.names import without_this_namespace
from rmqtools.model.queue import QueueRange
from rmqtools.policy.subscription import matches_tags
from rmqtools.protocol.stored_block import decode_block_messages


async def read_messages(
    client: ClientCore,
    range_: QueueRange,
    *,
    max_messages: int,
    max_bytes: int,
    read_filter: SubscriptionData | None = None,
    fail_on_data_loss: bool = True,
    namespace: str | None = None,
) -> AsyncGenerator[list[MessageExt], None]:
    """See :meth:`rmqtools.aio.Client.read_messages`; topics keep a namespace that is not given."""
    reader = RangeReader(client, range_, read_filter=read_filter, fail_on_data_loss=fail_on_data_loss)
    messages: list[MessageExt] = []
    size_bytes = 0
    pulls = reader.blocks(max_messages=1, max_bytes=max_bytes)  # a block of one pull is not copied
    async with aclosing(pulls):
        async for block in pulls:
            found = _inside(decode_block_messages(block), range_)
            if read_filter is not None:  # brokers compare hash codes, so others come through
                found = [message for message in found if matches_tags(read_filter, message.tags)]
            messages += _plain(found, namespace)
            size_bytes += len(block.buffer)
            if messages and (len(messages) >= max_messages or size_bytes >= max_bytes):
                yield messages
                messages, size_bytes = [], 0
    if messages:
        yield messages


def _plain(messages: list[MessageExt], namespace: str | None) -> list[MessageExt]:
    """The messages with their topics as a client of a namespace knows them."""
    if not namespace:
        return messages
    return [message.with_topic(without_this_namespace(message.topic, namespace)) for message in messages]


def _inside(messages: list[MessageExt], range_: QueueRange) -> list[MessageExt]:
    """Without those of stored batches that reach over the range's ends."""
    if messages and range_.begin <= messages[0].queue_offset and messages[-1].queue_offset < range_.end:
        return messages
    return [message for message in messages if range_.begin <= message.queue_offset < range_.end]
