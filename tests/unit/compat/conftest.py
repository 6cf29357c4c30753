"""What tests of the moved API share: a fake cluster with a topic, and clients that are shut down."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rmqtools.compat.client import Message, Producer, PushConsumer
from rmqtools.testing import FakeCluster


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        cluster.create_topic("orders", queues=2)
        yield cluster


@pytest.fixture
def open_client(cluster: FakeCluster) -> Iterator[Callable[..., Any]]:
    """``open_client(client)``: knows the cluster, and is shut down at the end."""
    clients: list[Any] = []

    def open_client(client: Any) -> Any:
        client.set_name_server_address(cluster.name_server)
        clients.append(client)
        return client

    yield open_client
    for client in clients:
        client.shutdown()


@pytest.fixture
def producer(open_client: Callable[..., Any]) -> Producer:
    producer: Producer = open_client(Producer("shop"))
    producer.start()
    return producer


@pytest.fixture
def consumer(open_client: Callable[..., Any]) -> PushConsumer:
    """Not started."""
    consumer: PushConsumer = open_client(PushConsumer("billing"))
    return consumer


def message_of(body: str | bytes = b"body", topic: str = "orders") -> Message:
    message = Message(topic)
    message.set_body(body)
    return message
