"""The broker of a bench: a local cluster with a server's memory and compiler, and backlogs to read."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from rmqtools import Admin, ClientConfig, Producer, ProducerConfig
from rmqtools.aio import Client
from rmqtools.arrow import send_batches
from rmqtools.cluster import LocalCluster
from rmqtools.cluster.state import load_state
from rmqtools.group import MessageRequestMode
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.wire.command import RemotingCommand

QUEUES = 8
_BATCH_ROWS, _BATCH_BYTES = 10_000, 16 * 1024 * 1024
# A local cluster is made small and quick to start; here it is to be what a server is. These win over its own.
SERVER_JVM = (
    "-Xms1g -Xmx1g -XX:MaxDirectMemorySize=1g -XX:TieredStopAtLevel=4 -XX:CICompilerCount=2 "
    "-XX:ReservedCodeCacheSize=240m -XX:-UseSerialGC -XX:+UseG1GC"
)
_KEPT_FILES = 4  # of a commit log: the last, and those that a slow deletion may leave
_SETTINGS = {
    "cleanResourceInterval": "1000",  # upstream 10000: files that may go, go soon
    "mappedFileSizeCommitLog": str(256 * 1024 * 1024),
    "mappedFileSizeConsumeQueue": "6000000",
    "maxHashSlotNum": "5000000",
    "maxIndexNum": "20000000",
    "waitTimeMillsInSendQueue": "10000",  # upstream 200: a busy machine is no reason to refuse
}


@dataclass(frozen=True)
class Broker:
    """A running cluster, and what the bench asks of it."""

    cluster: LocalCluster
    admin: Admin
    pid: int  # of the first broker

    @property
    def name_server(self) -> str:
        """``host:port``."""
        return self.cluster.name_server

    def stored(self, topic: str) -> int:
        """Return the sum of a topic's largest offsets."""
        return sum(self.admin.max_offset(queue) for queue in self.admin.fetch_subscribe_queues(topic))

    def await_stored(self, topic: str, count: int, *, timeout: float = 10.0) -> int:
        """Wait until a topic shows ``count`` messages, or no further one for ``timeout``; return how many."""
        stored, deadline = self.stored(topic), time.monotonic() + timeout
        while stored < count and time.monotonic() < deadline:
            time.sleep(0.05)  # brokers show what they acknowledged later: millions of messages take seconds
            before, stored = stored, self.stored(topic)
            if stored > before:
                deadline = time.monotonic() + timeout
        return stored

    def set(self, **settings: str) -> None:
        """Change the settings of all brokers."""
        for addr in self.cluster.broker_addrs.values():
            self.admin.update_broker_config(addr, settings)

    def drop_sent(self, *, timeout: float = 60.0) -> None:
        """Have all but the end of the commit logs deleted: a whole bench writes more than many disks have."""
        self.set(fileReservedTime="0")
        asyncio.run(self._delete_expired())
        deadline = time.monotonic() + timeout
        while self._commit_log_files() > _KEPT_FILES and time.monotonic() < deadline:
            time.sleep(0.1)
        self.set(fileReservedTime="72")

    async def _delete_expired(self) -> None:
        request = RemotingCommand(code=RequestCode.DELETE_EXPIRED_COMMITLOG)
        async with Client(ClientConfig(name_server=self.name_server)) as client:
            for addr in self.cluster.broker_addrs.values():
                await client._client.remoting.invoke_ok(addr, request)

    def _commit_log_files(self) -> int:
        """Of the broker that has the most."""
        logs = self.cluster.directory.glob("*/store/commitlog")
        return max(len(list(log.iterdir())) for log in logs)

    def let_pop(self, topic: str, group: str) -> None:
        """Have the members of a group that will consume a topic pop it."""
        self.admin.create_group(group)
        self.admin.set_message_request_mode(topic, group, MessageRequestMode.POP)

    def make_topic(self, topic: str, *, queues: int = QUEUES, queue_type: str = "SimpleCQ") -> str:
        """Make a topic with so many queues on each broker."""
        attributes = {"queue.type": queue_type}
        self.admin.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues, attributes=attributes)
        return topic

    def fill(
        self,
        topic: str,
        *,
        size: int,
        count: int,
        queues: int = QUEUES,
        compression: Literal["zlib", "none"] = "none",
    ) -> float:
        """Make a topic with a backlog as the programs send it: a tag, a key, one property; rows a second."""
        self.make_topic(topic, queues=queues)
        config = ProducerConfig(
            name_server=self.name_server, group="bench_fill", send_timeout=20.0, compression=compression
        )
        with Producer(config) as producer:
            rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES // size))
            batch = record_batch(rows, size)
            began = time.perf_counter()
            for begin in range(0, count, rows):
                send_batches(producer, [batch.slice(0, min(rows, count - begin))], topic=topic)
            seconds = time.perf_counter() - began
        if (stored := self.await_stored(topic, count)) != count:
            raise RuntimeError(f"{stored} of {count} messages stored in {topic}")
        return count / seconds


@contextmanager
def running_broker(*, brokers: int = 1) -> Iterator[Broker]:
    """Run a cluster for the time of the block; without the timer wheel nobody could pop."""
    before = os.environ.get("_JAVA_OPTIONS")
    os.environ["_JAVA_OPTIONS"] = SERVER_JVM
    try:
        cluster = LocalCluster(brokers=brokers, timer_wheel=True, broker_settings=_SETTINGS).start()
    finally:
        del os.environ["_JAVA_OPTIONS"]
        if before is not None:
            os.environ["_JAVA_OPTIONS"] = before
    try:
        state = load_state(cluster.directory)
        assert state is not None
        pid = next(server.pid for server in state.servers if server.name == "broker-a")
        with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            yield Broker(cluster, admin, pid)
    finally:
        cluster.stop()


def record_batch(count: int, size: int) -> pa.RecordBatch:
    """Messages as all programs send them, in columns."""
    columns = {
        "body": pa.array([b"x" * size] * count, pa.binary()),
        "tags": pa.array(["TagA"] * count),
        "keys": pa.array([f"k{number:07}" for number in range(count)]),
        "properties": pa.array([[("src", "bench")]] * count, pa.map_(pa.string(), pa.string())),
    }
    return pa.record_batch(columns)
