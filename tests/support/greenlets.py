"""A program whose threads gevent has patched: ``python -m tests.support.greenlets SCENE SETTINGS TOPIC``.

SETTINGS are those of every client, as JSON. Each scene prints what a test compares.
"""

from gevent import monkey

monkey.patch_all()

import asyncio  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from collections.abc import Mapping, Sequence  # noqa: E402
from typing import Any  # noqa: E402

import gevent  # noqa: E402
from gevent.event import Event  # noqa: E402

from rmqtools import (  # noqa: E402
    ConsumeContext,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
)
from rmqtools.errors import ClientStateError  # noqa: E402
from rmqtools.sync.loop_thread import LoopThread  # noqa: E402

Settings = Mapping[str, Any]

GREENLETS = 200
MESSAGES = 1000
SECONDS = 60.0
BUSY_SECONDS = 1.0


def new_producer(settings: Settings) -> Producer:
    """A producer that is patient, as all clients of tests are."""
    return Producer(ProducerConfig(**settings, group="greenlets", send_timeout=20.0))


def send(settings: Settings, topic: str) -> None:
    """Many greenlets send at once, while another one runs all the time."""
    turns = 0

    def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            gevent.sleep(0)

    with new_producer(settings) as producer:
        turning = gevent.spawn(turn)
        sending = [gevent.spawn(producer.send, Message(topic, b"%d" % n)) for n in range(GREENLETS)]
        gevent.joinall(sending, raise_error=True)
        futures = [producer.send_async(Message(topic, b"future")) for _ in range(10)]
        assert {future.result(SECONDS).queue.topic for future in futures} == {topic}
        producer.send_many([Message(topic, b"many")] * 10)
        turning.kill()
        lent = len(producer._producer._client.remoting.pool)
    print("sent", len({job.value.msg_id for job in sending}), "lent", lent, "others ran", turns > 10)


def consume(settings: Settings, topic: str) -> None:
    """A push consumer gets messages; its listener waits, and others run meanwhile."""
    bodies: set[bytes] = set()
    all_came = Event()

    def listen(messages: Sequence[MessageExt], context: ConsumeContext) -> None:
        gevent.sleep(0.001)
        bodies.update(message.body for message in messages)
        if len(bodies) == MESSAGES:
            all_came.set()

    with new_producer(settings) as producer:
        producer.send_many([Message(topic, b"%d" % n) for n in range(MESSAGES)])
        consumer = PushConsumer(
            PushConsumerConfig(**settings, group=f"push-{topic}", consume_from="CONSUME_FROM_FIRST_OFFSET")
        )
        consumer.subscribe(topic, listen)
        with consumer:
            all_came.wait(SECONDS)
    print("pushed", len(bodies))


def poll(settings: Settings, topic: str) -> None:
    """A pull consumer polls what was sent."""
    config = PullConsumerConfig(**settings, group=f"pull-{topic}", consume_from="CONSUME_FROM_FIRST_OFFSET")
    came: set[bytes] = set()
    with new_producer(settings) as producer, PullConsumer(config) as consumer:
        consumer.subscribe(topic)
        producer.send_many([Message(topic, b"%d" % n) for n in range(MESSAGES)])
        with gevent.Timeout(SECONDS):
            while len(came) < MESSAGES:
                came.update(message.body for message in consumer.poll(1.0))
    print("polled", len(came))


def limit(settings: Settings, topic: str) -> None:
    """gevent's own time limit ends a call, and the producer goes on."""
    with new_producer(settings) as producer:
        producer.send(Message(topic, b"before"))
        waiting = gevent.spawn(producer._bridge.run, lambda: asyncio.sleep(SECONDS))
        gevent.sleep(0)
        waiting.kill()
        result = None
        try:
            with gevent.Timeout(0.05):
                producer._bridge.run(lambda: asyncio.sleep(SECONDS))
        except gevent.Timeout:
            result = producer.send(Message(topic, b"after"))
    print("limited", result is not None)


def beside(settings: Settings, topic: str) -> None:
    """No event loop is seen to run by greenlets beside a client's."""
    with new_producer(settings) as producer:
        producer.send(Message(topic, b"body"))
        try:
            asyncio.get_running_loop()
        except RuntimeError as error:
            print("loop:", error)


def fork(settings: Settings, topic: str) -> None:
    """A forked child makes its own producer, refuses its parent's, and leaves its parent's answers alone."""
    producer = new_producer(settings)
    producer.start()
    producer.send(Message(topic, b"parent"))
    child = os.fork()
    if child == 0:
        sys.exit(_in_child(producer, settings, topic))
    sending = [gevent.spawn(producer.send, Message(topic, b"%d" % n)) for n in range(GREENLETS)]
    gevent.joinall(sending, raise_error=True)
    _, status = os.waitpid(child, 0)
    producer.close()
    repeated = sum(job.value.may_be_duplicated for job in sending)
    print("forked", len(sending), "repeated", repeated, "child", os.waitstatus_to_exitcode(status))


def _in_child(inherited: Producer, settings: Settings, topic: str) -> int:
    try:
        inherited.send(Message(topic, b"never"))
    except ClientStateError:
        with new_producer(settings) as producer:
            for _ in range(20):
                producer.send(Message(topic, b"child"))
                gevent.sleep(0.01)
        return 7
    return 1


def wake(settings: Settings, topic: str) -> None:
    """A parent's loop that wakes in a forked child, during a call on the child's loop, does not end it."""
    producer = new_producer(settings)
    producer.start()
    producer.send(Message(topic, b"parent"))
    parents = LoopThread.of_this_process().loop
    child = os.fork()
    if child == 0:
        sys.exit(_woken_in_child(parents, settings, topic))
    _, status = os.waitpid(child, 0)
    producer.close()
    print("child", os.waitstatus_to_exitcode(status))


def _woken_in_child(parents: asyncio.AbstractEventLoop, settings: Settings, topic: str) -> int:
    is_noted: list[bool] = []

    def give_way(queues: Sequence[MessageQueue], message: Message, arg: Any) -> MessageQueue:
        parents.call_soon_threadsafe(str)
        gevent.sleep(0.05)
        is_noted.append(asyncio.get_running_loop() is LoopThread.of_this_process().loop)
        return queues[0]

    with new_producer(settings) as producer:
        producer.send(Message(topic, b"child"), selector=give_way)  # a selector runs on the loop
    return 7 if is_noted == [True] else 1


def stop(settings: Settings, topic: str) -> None:
    """SIGTERM whose handler leaves the program, while the client's own loop runs: everything is closed."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(5))
    try:
        with new_producer(settings) as producer:
            producer.send(Message(topic, b"body"))
            LoopThread.of_this_process().loop.call_soon_threadsafe(signal.raise_signal, signal.SIGTERM)
            gevent.sleep(SECONDS)
    finally:
        print("closed", not producer._open, threading.current_thread() is threading.main_thread())


def busy(settings: Settings, topic: str) -> None:
    """A greenlet that never yields stops the client too; after it everything goes on, nothing twice."""
    config = ProducerConfig(
        **settings, group="greenlets", send_timeout=20.0, enable_backpressure_for_async_mode=True
    )
    with Producer(config) as producer:
        producer.send(Message(topic, b"first"))
        futures = [producer.send_async(Message(topic, b"%d" % n)) for n in range(10)]
        end = time.monotonic() + BUSY_SECONDS
        while time.monotonic() < end:
            pass
        waiting = producer.sends_in_flight().messages
        repeated = sum(future.result(SECONDS).may_be_duplicated for future in futures)
    print("while busy in flight", waiting, "repeated", repeated)


SCENES = {scene.__name__: scene for scene in (send, consume, poll, limit, beside, fork, wake, stop, busy)}

if __name__ == "__main__":
    SCENES[sys.argv[1]](json.loads(sys.argv[2]), sys.argv[3])
