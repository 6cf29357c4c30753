"""The two ways of a blocking send, and what their contract needs."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rmqtools import Message, Producer, ProducerConfig, SendResult
from rmqtools.errors import RocketMQError
from rmqtools.testing import FakeCluster
from tests.support.fake import Fake


def on_loop(producer: Producer, message: Message, **options: Any) -> SendResult:
    return producer.send_async(message, **options).result()


def on_caller(producer: Producer, message: Message, **options: Any) -> SendResult:
    return producer.send(message, **options)


@contextlib.contextmanager
def producing(cluster: FakeCluster, **settings: Any) -> Iterator[Producer]:
    """A producer with connections to all brokers, those for the caller's thread among them."""
    with Producer(ProducerConfig(name_server=cluster.name_server, group="g", **settings)) as producer:
        for queue in producer.fetch_publish_queues("T"):
            for _ in range(2):  # the first opens the loop's connection, the second one beside it
                producer.send(Message("T", b"warm"), queue=queue)
        yield producer


def pool_of(producer: Producer) -> Any:
    return producer._producer._client.remoting.pool


def open_to(producer: Producer, cluster: FakeCluster) -> list[bool]:
    """Return whether the loop's connections to the brokers are open."""
    opened = producer._producer._client.remoting.connections
    return [opened[cluster.addr(name)].is_open for name in "ab"]


class Observed(Fake):
    """Counts what is sent, and sends another body instead."""

    def __init__(self) -> None:
        self.results: list[SendResult] = []
        self.errors: list[RocketMQError] = []

    @contextlib.contextmanager
    def sending(self, messages: Sequence[Message], sender: object) -> Iterator[Any]:
        self.messages = [Message(message.topic, b"changed") for message in messages]
        try:
            yield self
        except RocketMQError as error:
            self.errors.append(error)
            raise

    def stored(self, results: Sequence[SendResult]) -> None:
        self.results += results

    def loop_delay(self, seconds: float) -> None:
        pass


def silence_after(asked: threading.Event) -> Callable[[object], None]:
    def answer(request: object) -> None:
        asked.set()

    return answer


def error_of(call: Callable[[], object]) -> str:
    try:
        call()
    except RocketMQError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"
