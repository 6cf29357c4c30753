"""A reader holds what its caller has not asked for yet only up to a bound."""

import subprocess
import sys

import pytest

from rmqtools import Message, Producer, ProducerConfig
from tests.support.patience import PATIENCE, PROGRAM_PATIENCE

pytestmark = pytest.mark.broker

MIB = 1024 * 1024
READER = """
import sys
from rmqtools import Client, ClientConfig, MessageQueue, QueueRange
from rmqtools.arrow import read_range
from tests.support.memory import peak_memory_bytes

name_server, topic, broker_name, count = sys.argv[1:]
with Client(ClientConfig(name_server=name_server)) as client:
    queue = MessageQueue(topic, broker_name, 0)
    rows = sum(batch.num_rows for batch in read_range(client, QueueRange(queue, 0, int(count))))
print(rows, peak_memory_bytes())
"""


@pytest.mark.parametrize("compression", ["none", "zstd"])  # the latter: a thousandth as stored
def test_a_reader_of_bodies_of_one_megabyte_stays_below_200_megabytes(
    local_cluster, admin, make_topic, compression
):
    topic, count = make_topic(queues=1, broker_names=["broker-a"]), 200
    settings = ProducerConfig(name_server=local_cluster.name_server, group="tests", compression=compression)
    with Producer(settings) as producer:
        results = [producer.send(Message(topic, bytes(MIB))) for _ in range(count)]
    admin.await_readable({results[0].queue: count}, timeout=PATIENCE)

    arguments = [sys.executable, "-c", READER, local_cluster.name_server, topic, "broker-a", str(count)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=PROGRAM_PATIENCE, check=True)

    rows, resident_bytes = map(int, done.stdout.split())
    assert rows == count
    assert resident_bytes < 200 * MIB
