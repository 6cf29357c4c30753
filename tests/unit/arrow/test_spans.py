"""Numbers as arrays that share their memory, without pandas."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from rmqtools.arrow.spans import number_array

PROGRAM = """
import sys
from rmqtools import Client, ClientConfig, Message, Producer, ProducerConfig, QueueRange
from rmqtools.arrow import MESSAGE_SCHEMA, read_ranges, send_batches
from rmqtools.testing.fake import FakeCluster

with FakeCluster() as cluster:
    cluster.create_topic("topic", queues=1)
    with Producer(ProducerConfig(name_server=cluster.name_server, group="group")) as producer:
        for number in range(20):
            message = Message("topic", b"x", "ab"[number % 2], ["k"], {f"p{number % 3}": "v"})
            producer.send(message)
        (queue,) = producer.fetch_publish_queues("topic")
    with Client(ClientConfig(name_server=cluster.name_server)) as client:
        for tags in (), ("a",):
            batches = read_ranges(client, [QueueRange(queue, 0, 20)], schema=MESSAGE_SCHEMA, tags=tags)
            print(sum(map(len, batches)))
print("pandas" in sys.modules)
"""


def test_numbers_are_those_of_pyarrow() -> None:
    for values in (np.arange(20)[::3], np.array([], np.int32), np.array([1 << 63], np.uint64)):
        assert number_array(values).equals(pa.array(values))


@pytest.mark.process
def test_reading_does_not_import_pandas() -> None:
    pytest.importorskip("pandas")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["20", "10", "False"], done.stderr
