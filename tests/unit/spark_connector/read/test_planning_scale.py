"""What a driver needs to plan a read of ten thousand queues."""

import json
import subprocess
import sys
from typing import Any

import pytest

from rmqtools import MessageQueue
from rmqtools.testing import FakeCluster
from tests.support.patience import PROGRAM_PATIENCE

BROKERS = tuple(f"broker-{number}" for number in range(10))
QUEUES_OF_A_BROKER = 1000
SECONDS = 5.0  # of a processor
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
        found = plan(cluster.name_server)
        if found["cpu"] >= SECONDS:  # a processor that others share is slower: once more
            found = plan(cluster.name_server)

    assert found["partitions"] == 10_000
    assert found["connections"] <= len(BROKERS) + 1  # and the name server
    assert found["cpu"] < SECONDS, found  # the cluster in this process takes as long again


def plan(name_server: str) -> dict[str, Any]:
    """Plan in a process of its own; what it has found and used."""
    program = [sys.executable, "-c", _PLAN, name_server]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PROGRAM_PATIENCE, check=True)
    return dict(json.loads(done.stdout))
