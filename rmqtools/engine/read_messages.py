"""Messages of a range, decoded: for tools that look at some of them, not for hot paths."""

from collections.abc import AsyncIterator
from dataclasses import replace

from rmqtools.engine.client import ClientCore
from rmqtools.engine.range_read import RangeReader
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import QueueRange
from rmqtools.protocol.messages import decode_message

_MAX_MESSAGES, _MAX_BYTES = 256, 1024 * 1024


async def read_messages(client: ClientCore, range_: QueueRange) -> AsyncIterator[list[MessageExt]]:
    """See :meth:`rmqtools.aio.Admin.read_messages`."""
    blocks = RangeReader(client, range_).blocks(max_messages=_MAX_MESSAGES, max_bytes=_MAX_BYTES)
    async for block in blocks:
        yield [
            replace(decode_message(block.buffer, start), broker_name=block.queue.broker_name)
            for start in block.starts
        ]
