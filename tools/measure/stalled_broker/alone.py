"""A member of ours and one of Java's while a broker stands still: queues and messages of each second."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rmqtools import ConsumeFromWhere, PushConsumer, PushConsumerConfig
from tests.support.java_consumer import JavaConsumer
from tests.support.java_peer import JavaPeer
from tools.measure.stalled_broker.scene import HEALTHY, QUEUES, SICK, TOPIC, Stall, running_scene


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


def show_alone(peer: JavaPeer, name: str, stall: Stall, seconds: int, pictures: Path | None) -> int:
    """Run one situation and print its seconds; return in how many ours was below Java's.

    ``pictures``: a folder for a picture of it.
    """
    seen = _situation(peer, stall, seconds)
    if pictures is not None:
        _draw(pictures / f"stalled-{name}.svg", stall, seen)
    return _show(name, stall, seen)


def _situation(peer: JavaPeer, stall: Stall, seconds: int) -> dict[str, Seen]:
    with running_scene() as scene:
        members = {"ours": _ours(scene.name_server), "java": _java(peer, scene.name_server)}
        seen = {name: Seen() for name in members}
        threads = [threading.Thread(target=member.start) for member in members.values()]
        try:
            for at in scene.ticks(stall, seconds):
                if at < 1:
                    for thread in threads:
                        thread.start()
                    continue
                for name, member in members.items():
                    held = member.queues()
                    seen[name].sick.append(held[SICK])
                    seen[name].healthy.append(held[HEALTHY])
                    seen[name].received.append(member.received())
        finally:
            scene.site.restore()
            for thread, member in zip(threads, members.values(), strict=True):
                thread.join(60)
                member.close()
    return seen


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
    consumer.subscribe(TOPIC, lambda messages, _: received.update(one.broker_name for one in messages))
    return _Member(
        consumer.start,
        consumer.close,
        lambda: Counter(queue.broker_name for queue in consumer.queues if queue.topic == TOPIC),
        lambda: received[HEALTHY],
    )


def _java(peer: JavaPeer, name_server: str) -> _Member:
    consumer = JavaConsumer(peer, name_server, "stalled-java", TOPIC, "--print")
    return _Member(
        consumer.start,
        consumer.stop,
        lambda: Counter(queue.broker_name for queue in consumer.assigned),
        lambda: sum(row["brokerName"] == HEALTHY for row in consumer.messages),
    )


def _show(name: str, stall: Stall, seen: dict[str, Seen]) -> int:
    """Print a line for each change; return in how many seconds ours was below Java's."""
    print(f"{name}: {SICK} stands still from {stall.begin:g} to {stall.end:g} s")
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
    fewer = [second for second, (ours, java) in enumerate(rows, 1) if ours[2] < java[2] - QUEUES]
    print(f"  seconds with fewer queues of {HEALTHY} than Java: {low or 'none'}")
    print(f"  seconds with fewer messages of {HEALTHY} than Java by more than a second's: {fewer or 'none'}")
    return len(low) + len(fewer)


def _draw(path: Path, stall: Stall, seen: dict[str, Seen]) -> None:
    from matplotlib.figure import Figure  # optional dependency

    figure = Figure(figsize=(9, 5))
    above, below = figure.subplots(2, 1, sharex=True)
    for name, one in seen.items():
        seconds = range(1, len(one.sick) + 1)
        above.step(seconds, [a + b for a, b in zip(one.sick, one.healthy, strict=True)], label=name)
        below.plot(seconds, one.received, label=name)
    for axes, title in ((above, "queues held, of 8"), (below, f"messages received of {HEALTHY}")):
        axes.axvspan(stall.begin, stall.end, alpha=0.2)
        axes.set_title(title)
        axes.legend()
    below.set_xlabel("seconds")
    figure.savefig(path)
