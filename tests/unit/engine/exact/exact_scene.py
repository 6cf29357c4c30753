"""A fake cluster with one queue, a producer, and appenders of it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from rmqtools import Message, MessageQueue, ProducerConfig
from rmqtools.aio import ExactAppender, Producer
from rmqtools.model.append_mark import APPEND_MARK, AppendMark, parse_mark
from rmqtools.testing import FakeCluster

TOPIC = "target"
QUEUE = MessageQueue(TOPIC, "broker-a", 0)
WRITER = "w"


@asynccontextmanager
async def scene(**settings: Any) -> AsyncIterator[tuple[FakeCluster, Producer]]:
    """A cluster whose brokers make no topics by themselves, and a producer."""
    async with FakeCluster(auto_create_topics=False) as cluster:
        cluster.create_topic(TOPIC, queues=2)
        async with Producer(ProducerConfig(name_server=cluster.name_server, **settings)) as producer:
            yield cluster, producer


def appender(producer: Producer, **settings: Any) -> ExactAppender:
    given: dict[str, Any] = {"writer": WRITER, "settle_seconds": 2.0} | settings
    return ExactAppender(producer, QUEUE, **given)


def cut(writer: ExactAppender) -> None:
    """Break the connection of a writer."""
    writer._writer._broker.abort()


def messages(positions: Sequence[int]) -> list[Message]:
    return [Message(TOPIC, str(position).encode()) for position in positions]


async def append(to: ExactAppender, *positions: int) -> None:
    await to.append(messages(positions), positions)


def store_marked(cluster: FakeCluster, position: int) -> None:
    """Store a message as the writer would have it."""
    mark = str(AppendMark(position, WRITER))
    cluster.store(TOPIC, str(position).encode(), queue=QUEUE, properties={APPEND_MARK: mark})


def stored(cluster: FakeCluster) -> list[int]:
    """The positions in the queue, in its order."""
    marks = [parse_mark(message.properties.get(APPEND_MARK)) for message in cluster.messages(TOPIC, QUEUE)]
    return [mark.position for mark in marks if mark is not None]
