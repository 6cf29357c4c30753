"""One broker of one version, and clients of it."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rmqtools import Admin, Client, ClientConfig, MessageExt, MessageQueue, Producer, ProducerConfig
from tests.support.reading import await_messages
from tests.support.resting import RestingCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 30.0  # seconds until messages must be there


@dataclass(frozen=True)
class Site:
    """What a feature is tried on."""

    name_server: str
    admin: Admin
    client: Client
    producer: Producer
    spark: "Callable[[], SparkSession]"  # started when it is first asked for
    folder: Path

    def topic(self, queues: int = 2) -> str:
        """A new topic."""
        topic = self.name("topic")
        self.admin.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues)
        return topic

    def name(self, kind: str) -> str:
        return f"{kind}-{uuid.uuid4().hex[:12]}"

    def queues(self, topic: str) -> Sequence[MessageQueue]:
        return self.admin.fetch_subscribe_queues(topic)

    def read(self, topic: str, count: int) -> list[MessageExt]:
        """The messages of a topic by queue and offset, as soon as there are ``count``."""
        return await_messages(self.client, self.admin, topic, count, timeout=PATIENCE)

    def options(self, topic: str) -> dict[str, str]:
        """The options of Spark's data source."""
        return {"nameServer": self.name_server, "topic": topic}


@contextmanager
def site_of(version: str, spark: "Callable[[], SparkSession]", folder: Path) -> Iterator[Site]:
    """A name server and a broker of a version; the timer wheel is on where the version has one."""
    with RestingCluster(version=version, timer_wheel=True) as cluster:
        config = ClientConfig(name_server=cluster.name_server)
        producing = ProducerConfig(name_server=cluster.name_server, group="versions")
        with Admin(config) as admin, Client(config) as client, Producer(producing) as producer:
            yield Site(cluster.name_server, admin, client, producer, spark, folder)


Feature = Callable[[Site], None]
