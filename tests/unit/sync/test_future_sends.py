"""Futures of sends: they cross to the loop together, and give what the send gave."""

import asyncio
import contextlib
import contextvars
from collections.abc import Iterator
from concurrent.futures import CancelledError, wait
from typing import Any

import pytest

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.errors import ClientStateError, MessageRejectedError, UnknownOutcomeError
from rmqtools.model.codes import RequestCode
from rmqtools.model.queue import MessageQueue
from rmqtools.observer import observe
from rmqtools.testing import FakeCluster, Reaction
from tests.behaviour.site import until
from tests.support.fake import Fake

MESSAGE = Message("T", b"x")
SENDS = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(brokers=("a",)) as cluster:
        cluster.create_topic("T", queues=2)
        yield cluster


@pytest.fixture(params=[0.0, 1.0], ids=["single", "linger"])
def producer(request, cluster) -> Iterator[Producer]:
    config = ProducerConfig(name_server=cluster.name_server, group="g", linger=request.param)
    with Producer(config) as producer:
        producer.fetch_publish_queues("T")
        yield producer


def silent(cluster) -> None:
    for code in SENDS:
        cluster.fault(code=code, times=None, answer=Reaction.SILENCE)


def asked(cluster) -> int:
    return sum(len(cluster.requests(code=code)) for code in SENDS)


def test_sends_given_while_the_loop_is_busy_wake_it_once(producer, monkeypatch):
    told: list[Any] = []
    monkeypatch.setattr(producer._bridge, "call_soon", told.append)
    futures = [producer.send_async(MESSAGE) for _ in range(50)]
    (take,) = told
    monkeypatch.undo()
    producer._bridge.call_soon(take)

    assert len({future.result(10).msg_id for future in futures}) == 50
    assert producer.send_async(MESSAGE).result(10)


def test_a_send_that_cannot_wake_the_loop_is_never_sent(producer, cluster, monkeypatch):
    def fail(function) -> None:
        raise ClientStateError("the interpreter is shutting down")

    monkeypatch.setattr(producer._bridge, "call_soon", fail)
    with pytest.raises(ClientStateError, match="shutting down"):
        producer.send_async(Message("T", b"never"))
    monkeypatch.undo()
    producer.send_async(Message("T", b"next")).result(10)

    assert [message.body for message in cluster.messages("T")] == [b"next"]


def test_an_error_is_raised_by_the_future(producer):
    queue = MessageQueue("T", "a", 0)
    both = producer.send_async(MESSAGE, queue=queue, selector=lambda queues, message, arg: queue)
    with pytest.raises(MessageRejectedError, match="exclude one another"):
        both.result(10)
    with pytest.raises(MessageRejectedError, match="body is empty"):
        producer.send_async(Message("T", b"")).result(10)
    with pytest.raises(MessageRejectedError, match="want a Message"):
        producer.send_async("text").result(10)


def test_a_closed_producer_says_so_through_the_future(producer):
    producer.close()
    with pytest.raises(ClientStateError, match="is closed: make a new one"):
        producer.send_async(MESSAGE).result(10)


@pytest.mark.process
def test_silence_is_raised_by_the_future(producer, cluster):
    silent(cluster)
    with pytest.raises(UnknownOutcomeError):
        producer.send_async(MESSAGE, timeout=1.0).result(30)


@pytest.mark.process
def test_a_call_has_its_own_timeout(producer, cluster):
    silent(cluster)

    with pytest.raises(UnknownOutcomeError) as caught:
        producer.send_async(MESSAGE, timeout=0.2).result(10)
    assert sum(attempt.seconds for attempt in caught.value.attempts) < producer.config.send_timeout / 2


@pytest.mark.process  # closing waits for the silent request
def test_cancelling_a_future_ends_its_send(producer, cluster):
    silent(cluster)
    futures = [producer.send_async(MESSAGE, timeout=60) for _ in range(2)]
    until(lambda: asked(cluster))
    for future in futures:
        assert future.cancel()

    assert wait(futures, timeout=10).not_done == set()
    with pytest.raises(CancelledError):
        futures[0].result(0)


def test_a_future_that_was_cancelled_before_the_loop_took_it_is_not_sent(producer, cluster, monkeypatch):
    told: list[Any] = []
    monkeypatch.setattr(producer._bridge, "call_soon", told.append)
    future = producer.send_async(MESSAGE)
    future.cancel()
    monkeypatch.undo()
    producer._bridge.call(told[0])

    assert wait([future], timeout=10).not_done == set()
    assert asked(cluster) == 0


def test_a_send_that_was_cancelled_on_the_loop_is_a_cancelled_future(producer):
    def cancel(queues, message, arg):
        raise asyncio.CancelledError

    with pytest.raises(CancelledError):
        producer.send_async(MESSAGE, selector=cancel).result(10)


_SPAN = contextvars.ContextVar("span", default="none")


class Seeing(Fake):
    """Notes the context in which sends begin."""

    def __init__(self) -> None:
        self.spans: list[Any] = []

    @contextlib.contextmanager
    def sending(self, messages, sender):
        self.spans.append(_SPAN.get())
        self.messages = messages
        yield self

    def stored(self, results) -> None:
        pass

    def loop_delay(self, seconds) -> None:
        pass


@pytest.mark.parametrize("linger", [0.0, 1.0])
def test_a_send_begins_in_the_context_of_its_caller(cluster, linger, monkeypatch):
    seeing, told = Seeing(), list[Any]()
    observe(seeing)
    try:
        with Producer(ProducerConfig(name_server=cluster.name_server, group="g", linger=linger)) as producer:
            monkeypatch.setattr(producer._bridge, "call_soon", told.append)
            futures = []
            for name in ("one", "two"):
                token = _SPAN.set(name)
                futures.append(producer.send_async(MESSAGE))
                _SPAN.reset(token)
            monkeypatch.undo()
            producer._bridge.call_soon(told[0])
            wait(futures, timeout=10)
    finally:
        observe(None)

    assert seeing.spans == ["one", "two"]
