"""``python -m tools.measure.mirror``: a mirror between two clusters, killed at moments that a seed decides.

Two brokers to two brokers. It prints how fast a mirror copies beside ``send_batches`` from columns, and then
whether the Java client finds each message once and in order in a copy with kills. All of it, in some hours:

    python -m tools.measure.mirror --messages 1000000 --kills 20 --broker-kills 5 --freezes 10 --pauses 20
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa

from rmqtools import (
    Admin,
    ClientConfig,
    MessageQueue,
    Mirror,
    MirrorConfig,
    Producer,
    ProducerConfig,
)
from rmqtools.arrow import send_batches
from rmqtools.cluster import LocalCluster
from rmqtools.policy.exact_append import LOCK_SECONDS
from tests.support.cluster_scene import pid_of
from tests.support.java_peer import JavaPeer

_TOPIC = "mirrored"
_BROKERS = ("broker-a", "broker-b")
_BODY = b"x" * 92
_LOOK = 0.2  # seconds between two looks at a running mirror


@dataclass
class _Stage:
    """Two clusters, and the mirror between them."""

    source: LocalCluster
    target: LocalCluster
    chance: random.Random
    settle: float
    rate: float
    counts: dict[str, int] = field(default_factory=dict)

    def config(self, copy: str) -> MirrorConfig:
        return MirrorConfig(
            source=_client(self.source),
            target=ProducerConfig(name_server=self.target.name_server, request_timeout=30.0),
            topics={_TOPIC: copy},
            source_name="east",
            target_name="west",
            settle_seconds=self.settle,
        )

    def mirror(self, *more: str) -> "subprocess.Popen[bytes]":
        """Start the command."""
        program = [sys.executable, "-c", "from rmqtools.cli import main; main()", "mirror", "run", _TOPIC]
        places = ["-n", self.source.name_server, "--to", self.target.name_server]
        names = ["--source-name", "east", "--target-name", "west", "--settle", str(self.settle)]
        return subprocess.Popen(
            [*program, *places, *names, *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def slow(self) -> "subprocess.Popen[bytes]":
        """Start the command with a limit, and wait until it has copied something or ended."""
        before, process = self.copied(), self.mirror("--rate", str(self.rate))
        while process.poll() is None and self.copied() == before:
            time.sleep(_LOOK)
        time.sleep(self.chance.uniform(0.0, 1.0))
        return process

    def copied(self) -> int:
        with Admin(_client(self.target)) as admin:
            return sum(map(admin.max_offset, admin.fetch_subscribe_queues(_TOPIC)))

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1
        print(f"{what} {self.counts[what]}, copied {self.copied()}", flush=True)


def _client(cluster: LocalCluster) -> ClientConfig:
    return ClientConfig(name_server=cluster.name_server, request_timeout=30.0)


def main() -> int:
    """Run, print, and return 1 if a message is missing, there twice, or out of order."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.mirror", description=__doc__)
    for name, default in (
        ("messages", 100_000),
        ("kills", 6),
        ("broker-kills", 2),
        ("freezes", 3),
        ("pauses", 1),
        ("seed", 49),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help="default: %(default)s")
    for name, number, text in (
        ("settle", 10.0, "seconds that a mirror waits for late requests"),
        ("pause-seconds", 90.0, "how long a mirror is stopped, with a second one started meanwhile"),
        ("lock-seconds", 60.0, "how long brokers keep the lock of a dead mirror"),
    ):
        parser.add_argument(f"--{name}", type=float, default=number, help=f"{text} (default: %(default)s)")
    asked = parser.parse_args()
    if asked.pauses and asked.lock_seconds < LOCK_SECONDS:
        parser.error(
            f"--pauses needs --lock-seconds {LOCK_SECONDS:.0f}, by which mirrors measure their pauses"
        )
    lock = f"-Drocketmq.broker.rebalance.lockMaxLiveTime={round(asked.lock_seconds * 1000)}"
    os.environ["JDK_JAVA_OPTIONS"] = lock
    with ExitStack() as clusters:
        source, target = (clusters.enter_context(LocalCluster(brokers=2)) for _ in range(2))
        rate = asked.messages / _copying_seconds(asked)
        stage = _Stage(source, target, random.Random(asked.seed), asked.settle, rate)
        _fill(stage, asked.messages)
        _measure(stage, asked.messages)
        _break(stage, asked)
        return _judge(stage, asked.messages)


def _copying_seconds(asked: argparse.Namespace) -> float:
    """Return for how long mirrors copy between kills: with this rate, all of them happen during the copy."""
    broken: float = 3.0 * asked.kills + 15.0 * asked.broker_kills + 12.0 * asked.freezes
    paused: float = asked.pauses * max(0.0, asked.pause_seconds - asked.lock_seconds)
    return 60.0 + broken + paused


def _fill(stage: _Stage, count: int) -> None:
    """Fill the source by ``send_batches``, and print its rate."""
    for cluster, topics in ((stage.source, [_TOPIC]), (stage.target, [_TOPIC, "plain", "rate"])):
        with Admin(_client(cluster)) as admin:
            for topic in topics:
                admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2)
    for cluster, topic in ((stage.source, _TOPIC), (stage.target, "plain")):
        bodies = pa.array([b"%8d" % number + _BODY for number in range(count)], pa.binary())
        keys = pa.array([f"k{number % 1000}" for number in range(count)])
        table = pa.table({"body": bodies, "keys": keys})
        config = ProducerConfig(name_server=cluster.name_server, send_timeout=30.0, request_timeout=30.0)
        with Producer(config) as producer:
            began, cpu = time.monotonic(), time.process_time()
            send_batches(producer, table.to_batches(), topic=topic)
            _show(f"send_batches to {topic}", count, time.monotonic() - began, time.process_time() - cpu)


def _measure(stage: _Stage, count: int) -> None:
    """Copy without kills, and print the rate behind the start; the CPU has the start in."""
    with Mirror(stage.config("rate")) as mirror:
        began, cpu = time.monotonic(), time.process_time()
        mirror.run()
        seconds = max(0.001, time.monotonic() - began - stage.settle)
        _show("mirror to rate, without its start", count, seconds, time.process_time() - cpu)


def _show(what: str, count: int, seconds: float, cpu_seconds: float) -> None:
    cpu = cpu_seconds / count * 1e6
    print(f"{what}: {count / seconds:.0f} messages a second, {cpu:.1f} us of CPU a message", flush=True)


def _break(stage: _Stage, asked: argparse.Namespace) -> None:
    works: list[Callable[[_Stage], None]] = [
        *[_kill_mirror] * asked.kills,
        *[_kill_broker] * asked.broker_kills,
        *[_freeze_broker] * asked.freezes,
        *[lambda stage: _pause_mirror(stage, asked.pause_seconds)] * asked.pauses,
    ]
    stage.chance.shuffle(works)
    for work in works:
        work(stage)
    while stage.mirror().wait():
        print("the last mirror was refused: again", flush=True)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def _kill_mirror(stage: _Stage) -> None:
    _end(stage.slow())
    stage.count("mirrors killed")


def _kill_broker(stage: _Stage) -> None:
    """Kill a broker of the target, and start it again; the mirror goes on, and is killed later."""
    process, name = stage.slow(), stage.chance.choice(_BROKERS)
    stage.target.kill_server(name)
    time.sleep(stage.chance.uniform(0.0, 3.0))
    stage.target.start_server(name)
    time.sleep(stage.chance.uniform(0.0, 15.0))
    _end(process)
    stage.count("brokers killed")


def _freeze_broker(stage: _Stage) -> None:
    """Stop a broker of the target, and kill the mirror meanwhile."""
    process = stage.slow()
    pid = pid_of(stage.target, stage.chance.choice(_BROKERS))
    os.kill(pid, signal.SIGSTOP)
    time.sleep(stage.chance.uniform(0.0, 1.0))
    _end(process)
    time.sleep(stage.chance.uniform(0.0, 5.0))
    os.kill(pid, signal.SIGCONT)
    stage.count("brokers frozen")


def _pause_mirror(stage: _Stage, seconds: float) -> None:
    """Stop a mirror, start a second one, and let the first one continue; then end both."""
    first = stage.slow()
    first.send_signal(signal.SIGSTOP)
    second = stage.mirror("--rate", str(stage.rate))
    time.sleep(seconds)
    first.send_signal(signal.SIGCONT)
    time.sleep(5.0)
    for process in (first, second):
        _end(process)
    stage.count("mirrors paused")


def _bodies(cluster: LocalCluster, topic: str) -> dict[tuple[str, int], list[bytes]]:
    """Return what the Java client reads of each queue, in its order."""
    found: dict[tuple[str, int], list[bytes]] = defaultdict(list)
    for row in JavaPeer.compiled().run("dump", cluster.name_server, topic, timeout=1800):
        found[row["brokerName"], row["queueId"]].append(bytes.fromhex(row["body"]))
    return found


def _judge(stage: _Stage, count: int) -> int:
    sent, copied = _bodies(stage.source, _TOPIC), _bodies(stage.target, _TOPIC)
    wrong = [place for place in sent if sent[place] != copied[place]]
    for place in wrong:
        seen = Counter(copied[place])
        at = [number for number, body in enumerate(copied[place]) if seen[body] > 1]
        twice = len(copied[place]) - len(seen)
        missing = len(set(sent[place]) - set(copied[place]))
        print(
            f"WRONG {place}: {len(sent[place])} sent, {twice} twice, {missing} missing: {at[:3]}, {at[-3:]}"
        )
    moved = _moved_groups(stage, sent, copied)
    stored = sum(map(len, copied.values()))
    print(f"{count} messages, {stored} copied, {len(wrong)} queues wrong, {moved} of 100 groups wrong")
    return bool(wrong or moved)


def _moved_groups(
    stage: _Stage, sent: dict[tuple[str, int], list[bytes]], copied: dict[tuple[str, int], list[bytes]]
) -> int:
    """Return how many of a hundred random offsets do not land on the same message."""
    wrong = 0
    with Admin(_client(stage.source)) as admin, Mirror(stage.config(_TOPIC)) as mirror:
        for number in range(100):
            place = stage.chance.choice([place for place in sent if sent[place]])
            offset = stage.chance.randrange(len(sent[place]))
            group = f"moved-{number}"
            admin.update_consumer_offset(group, MessageQueue(_TOPIC, *place), offset)
            (found,) = mirror.move_group(group, dry_run=True)
            wrong += copied[place][found.target_offset] != sent[place][offset]
    return wrong


if __name__ == "__main__":
    sys.exit(main())
