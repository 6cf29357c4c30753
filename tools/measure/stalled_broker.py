"""A broker that stands still, beside the official Java client: queues and messages of each second.

    python -m tools.measure.stalled_broker [--seconds 150] [--svg FOLDER]

Two brokers with four queues each. A member of ours and one of Java's, each in a group of its own, see the
same stall of broker-a (SIGSTOP): for 11 s while they start, or for 45 s while they run. One message a second
goes to each queue of broker-b, which is healthy.
"""

import argparse
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rmqtools import (
    Admin,
    ClientConfig,
    ConsumeFromWhere,
    Message,
    MessageQueue,
    Producer,
    ProducerConfig,
    PushConsumer,
    PushConsumerConfig,
)
from rmqtools.cluster import LocalCluster
from tests.support.java_consumer import JavaConsumer
from tests.support.java_peer import JavaPeer
from tools.measure.faults.site import LocalSite

_TOPIC, _QUEUES = "stalled", 4
_SICK, _HEALTHY = "broker-a", "broker-b"


@dataclass
class Seen:
    """One member's seconds: queues held of either broker, and messages of the healthy one received."""

    sick: list[int] = field(default_factory=list)
    healthy: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Member:
    start: Callable[[], object]
    close: Callable[[], None]
    queues: Callable[[], Counter[str]]
    received: Callable[[], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both situations; return 1 if ours was below Java's in any second."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.stalled_broker", description=__doc__)
    parser.add_argument("--seconds", type=int, default=150, help="of each situation (default: %(default)s)")
    parser.add_argument("--svg", type=Path, help="folder for a picture of each situation")
    chosen = parser.parse_args(arguments)
    below = 0
    peer = JavaPeer.compiled()
    for name, stall in (("starting", (0, 11)), ("running", (15, 60))):
        seen = _situation(peer, stall, chosen.seconds)
        below += _show(name, stall, seen)
        if chosen.svg is not None:
            _draw(chosen.svg / f"stalled-{name}.svg", stall, seen)
    return bool(below)


def _situation(peer: JavaPeer, stall: tuple[int, int], seconds: int) -> dict[str, Seen]:
    with LocalCluster(brokers=2) as cluster, Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        admin.create_topic(_TOPIC, read_queue_nums=_QUEUES, write_queue_nums=_QUEUES)
        site = LocalSite(cluster)
        members = {"ours": _ours(cluster.name_server), "java": _java(peer, cluster.name_server)}
        seen = {name: Seen() for name in members}
        with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
            began = time.monotonic()
            if stall[0] == 0:
                site.pause(_SICK)
            threads = [threading.Thread(target=member.start) for member in members.values()]
            for thread in threads:
                thread.start()
            try:
                for second in range(1, seconds + 1):
                    time.sleep(max(0.0, began + second - time.monotonic()))
                    _step(site, stall, second, producer)
                    for name, member in members.items():
                        held = member.queues()
                        seen[name].sick.append(held[_SICK])
                        seen[name].healthy.append(held[_HEALTHY])
                        seen[name].received.append(member.received())
            finally:
                site.restore()
                for thread, member in zip(threads, members.values(), strict=True):
                    thread.join(60)
                    member.close()
    return seen


def _step(site: LocalSite, stall: tuple[int, int], second: int, producer: Producer) -> None:
    if second == stall[0]:
        site.pause(_SICK)
    if second == stall[1]:
        site.unpause(_SICK)
    for number in range(_QUEUES):
        producer.send(Message(_TOPIC, b"x"), queue=MessageQueue(_TOPIC, _HEALTHY, number), timeout=10.0)


def _ours(name_server: str) -> _Member:
    received: Counter[str] = Counter()
    config = PushConsumerConfig(
        name_server=name_server,
        group="stalled-ours",
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        poll_name_server_interval=1.0,  # as the Java member of the tests
        heartbeat_broker_interval=1.0,
    )
    consumer = PushConsumer(config)
    consumer.subscribe(_TOPIC, lambda messages, _: received.update(one.broker_name for one in messages))
    return _Member(
        consumer.start,
        consumer.close,
        lambda: Counter(queue.broker_name for queue in consumer.queues if queue.topic == _TOPIC),
        lambda: received[_HEALTHY],
    )


def _java(peer: JavaPeer, name_server: str) -> _Member:
    consumer = JavaConsumer(peer, name_server, "stalled-java", _TOPIC, "--print")
    return _Member(
        consumer.start,
        consumer.stop,
        lambda: Counter(queue.broker_name for queue in consumer.assigned),
        lambda: sum(row["brokerName"] == _HEALTHY for row in consumer.messages),
    )


def _show(name: str, stall: tuple[int, int], seen: dict[str, Seen]) -> int:
    """Print a line for each change; return in how many seconds ours was below Java's."""
    print(f"{name}: {_SICK} stands still from {stall[0]} to {stall[1]} s")
    print("  second  ours: a b received   java: a b received")
    rows = list(
        zip(*(zip(one.sick, one.healthy, one.received, strict=True) for one in seen.values()), strict=True)
    )
    last = None
    for second, (ours, java) in enumerate(rows, 1):
        if (ours[:2], java[:2]) != last or second == len(rows):
            last = ours[:2], java[:2]
            print(f"  {second:6}  {ours[0]:7} {ours[1]} {ours[2]:8}   {java[0]:7} {java[1]} {java[2]:8}")
    low = [second for second, (ours, java) in enumerate(rows, 1) if ours[1] < java[1]]
    fewer = [second for second, (ours, java) in enumerate(rows, 1) if ours[2] < java[2] - _QUEUES]
    print(f"  seconds with fewer queues of {_HEALTHY} than Java: {low or 'none'}")
    print(f"  seconds with fewer messages of {_HEALTHY} than Java by more than a second's: {fewer or 'none'}")
    return len(low) + len(fewer)


def _draw(path: Path, stall: tuple[int, int], seen: dict[str, Seen]) -> None:
    from matplotlib.figure import Figure  # optional dependency

    figure = Figure(figsize=(9, 5))
    above, below = figure.subplots(2, 1, sharex=True)
    for name, one in seen.items():
        seconds = range(1, len(one.sick) + 1)
        above.step(seconds, [a + b for a, b in zip(one.sick, one.healthy, strict=True)], label=name)
        below.plot(seconds, one.received, label=name)
    for axes, title in ((above, "queues held, of 8"), (below, f"messages received of {_HEALTHY}")):
        axes.axvspan(*stall, alpha=0.2)
        axes.set_title(title)
        axes.legend()
    below.set_xlabel("seconds")
    figure.savefig(path)


if __name__ == "__main__":
    sys.exit(main())
