"""Calls that a signal's handler ends at any moment: every message is returned, once."""

import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from rmqtools import (
    ConsumeFromWhere,
    Message,
    MessageQueue,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
)
from tests.behaviour.site import Site
from tests.support.interrupts import is_finalizer
from tests.support.patience import PATIENCE

COUNT = 400
LONGEST = 0.004  # seconds until an alarm


class Alarm(Exception):
    """Raised by the handler."""


@contextmanager
def alarms() -> Iterator[Callable[[float], None]]:
    """``ring_after(seconds)``; 0: not at all. One in a finalizer, which would swallow it, comes later."""

    def ring(_: int, frame: FrameType | None) -> None:
        if is_finalizer(frame):
            signal.setitimer(signal.ITIMER_REAL, LONGEST)
            return
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds) and None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def send(site: Site, topic: str) -> None:
    with Producer(ProducerConfig(name_server=site.name_server, group="tests")) as producer:
        for queue_id in range(2):
            queue = MessageQueue(topic, site.broker, queue_id)
            messages = [Message(topic, b"%d-%d" % (queue_id, number)) for number in range(COUNT // 2)]
            producer.send_batch(messages, queue=queue)


def consumer_of(site: Site, group: str, topic: str, **settings: Any) -> PullConsumer:
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    config = PullConsumerConfig(name_server=site.name_server, group=group, consume_from=first, **settings)
    consumer = PullConsumer(config)
    consumer.subscribe(topic)
    return consumer


@pytest.mark.parametrize("auto_commit", [True, False])
def test_polls_that_alarms_end_lose_nothing_and_repeat_nothing(site, group, topic, auto_commit):
    send(site, topic)
    chance, got, interrupts = random.Random(7), list[bytes](), 0
    deadline = time.monotonic() + PATIENCE
    settings: dict[str, Any] = {"auto_commit": auto_commit, "auto_commit_interval": 0.01}
    with alarms() as ring_after, consumer_of(site, group, topic, **settings) as consumer:
        while len(got) < COUNT and time.monotonic() < deadline:
            messages = []
            try:
                ring_after(chance.uniform(0.0001, LONGEST))
                messages = consumer.poll(1.0, chance.choice([1, 3]))
                ring_after(0)
            except Alarm:
                interrupts += 1
            got += [message.body for message in messages]
            if messages and not auto_commit:
                consumer.commit()
    with consumer_of(site, group, topic) as successor:
        left = successor.poll(0.2)

    wanted = [b"%d-%d" % (queue_id, number) for queue_id in range(2) for number in range(COUNT // 2)]
    assert (sorted(got), left) == (sorted(wanted), [])
    assert interrupts
