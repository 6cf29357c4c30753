"""Sends on the caller's thread; the contract of both ways is in ``tests/behaviour/test_send_ways.py``."""

import contextlib
import sys
import threading

import pytest

from rmqtools import Message, Producer, ProducerConfig, TransactionProducer
from rmqtools.errors import ClientStateError, RocketMQError
from rmqtools.testing import FakeCluster
from tests.support.interrupts import interrupted_at
from tests.support.send_ways import pool_of
from tests.support.transactions import Listener

MESSAGE = Message("T", b"body")
OURS = ("connection_pool.py", "blocking_connection.py", "send_way.py", "handwritten/producer.py")


@pytest.fixture
def cluster():
    with FakeCluster() as cluster:
        cluster.create_topic("T", queues=1)
        yield cluster


def producing(cluster: FakeCluster) -> Producer:
    producer = Producer(ProducerConfig(name_server=cluster.name_server, group="g"))
    producer.start()
    for _ in range(2):
        producer.send(MESSAGE)
    return producer


@pytest.fixture
def producer(cluster):
    producer = producing(cluster)
    yield producer
    producer.close()


def call_at_line(number: int, function):
    """Trace this thread; call ``function`` at the given line, counted over our files, as a signal would."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if not frame.f_code.co_filename.endswith(OURS):
            return None
        if event == "line":
            seen += 1
            if seen == number:
                sys.settrace(None)
                function()
        return trace

    return trace


@pytest.mark.process  # it works for seconds
def test_a_signal_handler_may_close_the_producer_wherever_it_interrupts_a_send(cluster):
    reached = []

    def send_and_close_at(number: int, producer: Producer) -> None:
        sys.settrace(call_at_line(number, lambda: (producer.close(), reached.append(number))))
        try:
            with contextlib.suppress(RocketMQError):
                producer.send(MESSAGE)
        finally:
            sys.settrace(None)

    for number in range(1, 200, 4):
        producer = producing(cluster)
        thread = threading.Thread(target=send_and_close_at, args=(number, producer))
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
        producer.close()
        assert len(pool_of(producer)) == 0
        if number not in reached:
            break

    assert len(reached) > 10
    assert number not in reached  # every line was tried


@pytest.mark.process  # it works for seconds
@pytest.mark.filterwarnings("ignore:coroutine 'Sender.place_one' was never awaited:RuntimeWarning")
def test_no_interrupt_of_a_send_keeps_a_connection_wherever_it_comes(producer):
    pool, number, kept = pool_of(producer), 1, []
    while interrupted_at(number, OURS, lambda: producer.send(MESSAGE)):
        if len(pool) > sum(map(len, pool._idle.values())):
            kept.append(number)
        number += 1
    producer.close()

    assert number > 200
    assert kept == []
    assert len(pool) == 0


def test_a_send_on_the_loop_thread_is_refused(producer):
    def send() -> str:
        try:
            producer.send(MESSAGE)
        except ClientStateError as error:
            return str(error)
        return "sent"

    said = producer._bridge.call(send)

    assert "a blocking call on the loop thread would wait for itself" in said


def test_a_transaction_producer_sends_plain_messages_so_too(cluster):
    config = ProducerConfig(name_server=cluster.name_server, group="g")
    with TransactionProducer(config, listener=Listener()) as producer:
        for _ in range(3):
            producer.send(MESSAGE)
        assert len(pool_of(producer)) == 1

    assert len(cluster.messages("T")) == 3


def test_a_producer_with_traces_sends_on_the_loop_where_its_records_wait(cluster):
    config = ProducerConfig(name_server=cluster.name_server, group="g", enable_trace=True)
    with Producer(config) as producer:
        for _ in range(3):
            producer.send(MESSAGE)
        assert len(pool_of(producer)) == 0


def test_a_selector_runs_on_the_loop_thread(producer):
    threads = []

    def select(queues, message, arg):
        threads.append(threading.current_thread().name)
        return queues[0]

    producer.send(MESSAGE, selector=select)

    assert threads == ["rmqtools-loop"]
