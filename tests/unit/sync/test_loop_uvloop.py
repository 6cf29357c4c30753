"""The loop thread with and without uvloop."""

import subprocess
import sys

import pytest

from tests.support.event_loops import needs_uvloop

PROGRAM = """
import sys
if {without}:
    sys.modules["uvloop"] = None  # as if it were not installed

from rmqtools import Message, Producer, ProducerConfig, PullConsumer, PullConsumerConfig
from rmqtools.sync.loop_thread import LoopThread
from rmqtools.testing import FakeCluster

with FakeCluster() as cluster:
    cluster.create_topic("T")
    with Producer(ProducerConfig(name_server=cluster.name_server, group="p")) as producer:
        producer.send(Message("T", b"first"))
        producer.send_async(Message("T", b"second")).result()
    first = "CONSUME_FROM_FIRST_OFFSET"
    config = PullConsumerConfig(name_server=cluster.name_server, group="g", consume_from=first)
    with PullConsumer(config) as consumer:
        consumer.subscribe("T")
        bodies = set()
        while len(bodies) < 2:
            bodies |= {{message.body for message in consumer.poll(timeout=1.0)}}
    cluster.disconnect("broker-a")
print(type(LoopThread.of_this_process().loop).__module__.partition(".")[0], sorted(bodies))
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("without", "package"),
    [pytest.param(True, "asyncio"), pytest.param(False, "uvloop", marks=needs_uvloop)],
)
def test_blocking_classes_work_on_either_and_the_process_ends_without_a_word(without, package):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(without=without)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == f"{package} [b'first', b'second']"
