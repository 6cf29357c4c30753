"""What a driver needs to plan a read of ten thousand queues."""

import json
import subprocess
import sys

import pytest

from rmqtools import MessageQueue
from rmqtools.testing import FakeCluster

BROKERS = tuple(f"broker-{number}" for number in range(10))
QUEUES_OF_A_BROKER = 1000
_PLAN = """
import json, os, socket, stat, sys, time
from spark_connector.datasource import RocketMQDataSource

def count_connections():
    fds = [fd for fd in range(4096) if os.path.exists(f"/proc/self/fd/{fd}")]
    open_sockets = [fd for fd in fds if stat.S_ISSOCK(os.fstat(fd).st_mode)]
    return sum(socket.socket(fileno=os.dup(fd)).family == socket.AF_INET for fd in open_sockets)

source = RocketMQDataSource({"nameServer": sys.argv[1], "topic": "T", "startingOffsets": "earliest"})
cpu, began = time.process_time(), time.monotonic()
partitions = len(source.reader(source.schema()).partitions())
cpu, seconds = time.process_time() - cpu, time.monotonic() - began
found = {"partitions": partitions, "connections": count_connections(), "cpu": cpu, "seconds": seconds}
print(json.dumps(found))
"""


@pytest.mark.process
def test_ten_thousand_queues_are_planned_in_five_seconds_over_one_connection_to_each_broker():
    with FakeCluster(BROKERS) as cluster:
        cluster.create_topic("T", queues=QUEUES_OF_A_BROKER)
        for broker in BROKERS:
            for queue_id in range(QUEUES_OF_A_BROKER):
                cluster.store("T", b"", queue=MessageQueue("T", broker, queue_id))
        program = [sys.executable, "-c", _PLAN, cluster.name_server]
        done = subprocess.run(program, capture_output=True, text=True, timeout=100, check=True)

    found = json.loads(done.stdout)
    assert found["partitions"] == 10_000
    assert found["connections"] <= len(BROKERS) + 1  # and the name server
    assert found["cpu"] < 5, found  # seconds; the cluster in this process takes as long again
