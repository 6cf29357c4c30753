"""A process that appends positions to a queue, exactly once, until a number: for tests that kill it.

    python -m tests.integration.exact_writer NAME_SERVER TOPIC BROKER END SETTLE_SECONDS

It prints the id that holds its lock, then a line after each request.
"""

import asyncio
import sys

from rmqtools import Message, MessageQueue, ProducerConfig
from rmqtools.aio import ExactAppender, Producer

BATCH = 200


async def write(name_server: str, topic: str, broker: str, end: int, settle_seconds: float) -> None:
    config = ProducerConfig(name_server=name_server, max_batch_bytes=1024 * 1024)
    queue = MessageQueue(topic, broker, 0)
    async with Producer(config) as producer:
        writer = ExactAppender(producer, queue, writer="killed", settle_seconds=settle_seconds)
        print(writer._writer._locks._client_id, flush=True)
        async with writer:
            begin = -1 if writer.last_position is None else writer.last_position
            for first in range(begin + 1, end, BATCH):
                positions = range(first, min(end, first + BATCH))
                await writer.append(
                    [Message(topic, b"%8d" % position * 100) for position in positions], positions
                )
                print(positions[-1], flush=True)


if __name__ == "__main__":
    name_server, topic, broker, end, settle = sys.argv[1:]
    asyncio.run(write(name_server, topic, broker, int(end), float(settle)))
