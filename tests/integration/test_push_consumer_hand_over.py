"""What a member hands over: a queue in order, offsets at exit, a topic that it takes up again."""

import subprocess
import sys

import pytest

from rmqtools.engine.group.local_offset_store import LocalFileOffsetStore
from tests.support.cluster_scene import wait_until
from tests.support.listening import Heard, new_group, numbers
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.broker


def test_a_message_that_is_consumed_while_its_queue_changes_hands_comes_once(consume, send, make_topic, gate):
    topic, group = make_topic(queues=1, broker_names=["broker-a"]), new_group()
    first, second = Heard(lambda *_: gate.wait(PATIENCE) and None), Heard()
    send(topic, numbers(6))
    leaving = consume(topic, first, group=group, orderly=True, instance_name="z")
    first.wait(1)
    consume(topic, second, group=group, orderly=True, instance_name="a")  # sorts before: gets the queue
    wait_until(lambda: topic not in {queue.topic for queue in leaving.queues})
    gate.set()
    second.wait(5)

    assert sorted(first.bodies + second.bodies) == numbers(6)
    assert first.bodies == [b"0"]


_BROADCASTING = """
import atexit, sys, threading
from rmqtools import *

name_server, topic, path = sys.argv[1:]
heard = threading.Semaphore(0)
consumer = PushConsumer(PushConsumerConfig(
    name_server=name_server, group="at-exit", offset_store_path=path, instance_name="one",
    message_model=MessageModel.BROADCASTING, consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    persist_consumer_offset_interval=3600.0,
))
consumer.subscribe(topic, lambda messages, context: heard.release())
atexit.register(consumer.close)
consumer.start()
print(sum(heard.acquire(timeout=20) for _ in range(8)))
while heard.acquire(timeout=1):
    print("more")
"""


def test_a_broadcasting_consumer_that_is_closed_at_exit_stores_its_offsets(
    local_cluster, send, make_topic, tmp_path
):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    send(topic, numbers(8))
    path = tmp_path / "offsets"
    command = [sys.executable, "-c", _BROADCASTING, local_cluster.name_server, topic, str(path)]
    first = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert (first.stdout, first.stderr, first.returncode) == ("8\n", "", 0)
    assert list(LocalFileOffsetStore(path).noted().values()) == [8]
