"""Blocking consumers whose start or close is interrupted, and listeners that close their consumer."""

import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from rmqtools import ConsumeFromWhere, PullConsumer, PushConsumer, PushConsumerConfig
from rmqtools.model.codes import RequestCode
from rmqtools.sync.loop import Bridge
from tests.support.interrupts import interrupted_when
from tests.support.patience import PATIENCE
from tests.unit.engine.consumer.pull_scene import TOPIC, BrokerSet, config

MEMBERS, STORE = RequestCode.GET_CONSUMER_LIST_BY_GROUP, RequestCode.UPDATE_CONSUMER_OFFSET


@pytest.fixture
def brokers() -> Iterator[BrokerSet]:
    bridge, stack, brokers = Bridge(), AsyncExitStack(), BrokerSet(10)
    bridge.run(lambda: stack.enter_async_context(brokers.serving()))
    yield brokers
    bridge.run(stack.aclose)


def in_a_moment() -> threading.Event:
    """Return an event that is set while the call after this one waits."""
    event = threading.Event()
    threading.Timer(0.3, event.set).start()
    return event


def consumer_of(brokers: BrokerSet) -> PullConsumer:
    consumer = PullConsumer(config(brokers, request_timeout=1.0))
    consumer.subscribe(TOPIC)
    return consumer


@pytest.mark.process
def test_a_start_that_is_interrupted_leaves_the_group_before_it_raises(brokers):
    brokers.silence(MEMBERS)
    consumer = consumer_of(brokers)
    with interrupted_when(in_a_moment()), pytest.raises(KeyboardInterrupt):
        consumer.start()

    assert brokers.left == 1
    consumer.close()


def test_a_consumer_that_is_closed_before_its_start_calls_its_queue_listener(brokers):
    called = threading.Event()
    consumer = PullConsumer(config(brokers), message_queue_listener=lambda *_: called.set())
    consumer.subscribe(TOPIC)
    consumer.close()

    with consumer:
        assert called.wait(PATIENCE)


@pytest.mark.process  # waits for a silent broker
def test_a_close_that_is_interrupted_is_finished_by_the_next(brokers):
    consumer = consumer_of(brokers)
    consumer.start()
    assert len(consumer.poll(5, 10)) == 10
    brokers.silence(STORE)
    with interrupted_when(in_a_moment()), pytest.raises(KeyboardInterrupt):
        consumer.close()
    assert brokers.left == 0
    consumer.close()

    assert (brokers.left, brokers.updates[-1]) == (1, (0, 10))


@pytest.mark.parametrize("threads", [1, 4])
def test_blocking_listeners_that_close_their_own_consumer_are_not_waited_for(brokers, threads):
    closed = threading.Semaphore(0)
    all_here = threading.Barrier(threads)

    def listen(messages, context):
        all_here.wait(10)
        consumer.close()
        closed.release()

    settings = PushConsumerConfig(
        name_server=brokers.name_server,
        group="g",
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_threads=threads,
        close_timeout=60.0,
    )
    consumer = PushConsumer(settings)
    consumer.subscribe(TOPIC, listen)
    began = time.monotonic()
    consumer.start()

    assert [closed.acquire(timeout=30) for _ in range(threads)] == [True] * threads
    assert time.monotonic() - began < 30
    consumer.close()
