"""A producer with ``linger`` on a cluster in this process, and what is sent by it."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from rmqtools import Message, MessageQueue, ProducerConfig
from rmqtools.aio import Producer
from rmqtools.testing import FakeCluster, Reaction, RequestCode

SINGLE, BATCH = RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE
QUEUE = MessageQueue("T", "a", 1)


@asynccontextmanager
async def lingering(*, brokers=("a",), queues: int = 4, **settings):
    """A producer on a cluster; ``linger`` is so long that only other reasons end it."""
    async with FakeCluster(brokers=brokers) as cluster:
        cluster.create_topic("T", queues=queues)
        wanted: Any = {"name_server": cluster.name_server, "group": "g", "linger": 2.0} | settings
        async with Producer(ProducerConfig(**wanted)) as producer:
            await producer.fetch_publish_queues("T")
            yield producer, cluster


def plain(count: int, size: int = 4) -> list[Message]:
    return [Message("T", b"%0*d" % (size, number), properties={"n": str(number)}) for number in range(count)]


def send_all(producer, messages, **options) -> list[asyncio.Task[Any]]:
    """Calls that are all begun, in this order, before any of them continues."""
    return [asyncio.create_task(producer.send(message, **options)) for message in messages]


def codes(cluster) -> list[int]:
    return [request.code for request in cluster.requests() if request.code in (SINGLE, BATCH)]


def slow(cluster, seconds: float, times: int | None = 1, **where):
    """The broker stores at once and answers late."""
    return cluster.fault(delay=seconds, times=times, answer=Reaction.PASS, **where)


async def on_wire(cluster, count: int) -> None:
    async with asyncio.timeout(10):
        while len(codes(cluster)) < count:  # noqa: ASYNC110 - the broker tells nobody
            await asyncio.sleep(0.001)


async def held_up(producer, cluster, seconds: float = 0.5) -> list[asyncio.Task[Any]]:
    """A message whose request is on the wire for so long, so that those after it wait."""
    slow(cluster, seconds, code=SINGLE)
    first = send_all(producer, plain(1))
    await on_wire(cluster, 1)
    return first
