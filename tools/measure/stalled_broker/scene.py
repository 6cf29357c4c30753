"""Two brokers with four queues each: broker-a stands still for a while, broker-b gets messages."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rmqtools import Admin, ClientConfig, Message, MessageQueue, Producer, ProducerConfig
from rmqtools.cluster import LocalCluster
from tools.measure.faults.site import LocalSite

TOPIC, QUEUES = "stalled", 4
SICK, HEALTHY = "broker-a", "broker-b"
EVERY = [
    MessageQueue(TOPIC, broker_name, number) for broker_name in (SICK, HEALTHY) for number in range(QUEUES)
]


@dataclass(frozen=True)
class Stall:
    """A time in which broker-a stands still (SIGSTOP), in seconds since the run began."""

    begin: float
    end: float


@dataclass
class Scene:
    """The running servers."""

    name_server: str
    site: LocalSite
    producer: Producer
    sent: int = 0
    """Messages to the healthy broker."""

    def ticks(self, stall: Stall, seconds: float, *, every: float = 1.0) -> Iterator[float]:
        """Yield the time every so many seconds, after what is due: the stall, and each second's messages."""
        began, tick, sends, stopped, ended = time.monotonic(), 0, 0, False, False
        while tick * every <= seconds:
            time.sleep(max(0.0, began + tick * every - time.monotonic()))
            now = time.monotonic() - began
            if not stopped and now >= stall.begin:
                self.site.pause(SICK)
                stopped = True
            if not ended and now >= stall.end:
                self.site.unpause(SICK)
                ended = True
            if now >= sends:
                self._send()
                sends += 1
            yield now
            tick += 1

    def _send(self) -> None:
        for queue in EVERY:
            if queue.broker_name == HEALTHY:
                self.producer.send(Message(TOPIC, b"x"), queue=queue, timeout=10.0)
                self.sent += 1


@contextmanager
def running_scene() -> Iterator[Scene]:
    """Start the servers; at the end let broker-a go on, and stop them."""
    settings = {"waitTimeMillsInSendQueue": "10000"}  # the machine may be busy: no SYSTEM_BUSY
    with (
        LocalCluster(brokers=2, broker_settings=settings) as cluster,
        Admin(ClientConfig(name_server=cluster.name_server)) as admin,
    ):
        admin.create_topic(TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        site = LocalSite(cluster)
        with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
            try:
                yield Scene(cluster.name_server, site, producer)
            finally:
                site.restore()
