"""``python -m tools.measure.bench.single_messages``: our simple consumer beside the gRPC client's.

One broker; ours speaks to it, the gRPC client through a proxy, whose CPU is in no figure. First what each
does in some situations, then rate and CPU of receiving and acknowledging 32 messages at a time, in turns.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.cluster import LocalCluster
from rmqtools.cluster.ports import LOOPBACK
from rmqtools.errors import TopicNotFoundError
from tests.support.native_client import install_peer
from tests.support.proxy import running_server
from tools.measure.bench.peers.single_program import SCENARIOS

_MESSAGES = {"rate": 0, "fifo": 2}  # stored before a scenario; others: 1
_SECONDS = 400.0  # of one process
_SIDES = ("ours", "ours-batched", "grpc")


class Stage:
    """A broker, its proxy, and the processes that use them."""

    def __init__(self, admin: Admin, producer: Producer, addresses: Mapping[str, str], home: str) -> None:
        self._admin = admin
        self._producer = producer
        self._addresses = addresses
        self._home = home
        self._packages = str(install_peer("rocketmq-python-client", with_dependencies=True))
        self._runs = 0

    def run(self, side: str, scenario: str, total: int = 0) -> dict[str, object]:
        """Run one scenario in a process of its own, with a topic and a group of its own."""
        self._runs += 1
        topic, group = f"single-{self._runs}", f"single-{self._runs}"
        kind: Literal["FIFO", "NORMAL"] = "FIFO" if scenario == "fifo" else "NORMAL"
        self._admin.create_topic(topic, read_queue_nums=4, write_queue_nums=4, message_type=kind)
        self._admin.create_group(group, retry_max_times=1, consume_message_orderly=scenario == "fifo")
        self._fill(topic, total + 64 if scenario == "rate" else _MESSAGES.get(scenario, 1), kind)
        address = self._addresses["grpc" if side == "grpc" else "ours"]
        program = [sys.executable, "-m", "tools.measure.bench.peers.single_program", side, address]
        command = [*program, self._packages, self._home, scenario, topic, group, str(total)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
        if done.returncode:
            return {"error": done.stderr.strip().splitlines()[-1]}
        found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
        if scenario == "dead":
            found["dead letters"] = self._stored(f"%DLQ%{group}")
        return found

    def _fill(self, topic: str, count: int, kind: str) -> None:
        if kind == "FIFO":
            for number in range(count):
                self._producer.send_orderly(Message(topic, b"%d" % number, sharding_key="one"))
            return
        for start in range(0, count, 1000):
            body = b"x" * 1024
            self._producer.send_many([Message(topic, body) for _ in range(min(1000, count - start))])

    def _stored(self, topic: str) -> int:
        try:
            return sum(map(self._admin.max_offset, self._admin.fetch_subscribe_queues(topic)))
        except TopicNotFoundError:
            return 0


def behaviours(stage: Stage) -> list[str]:
    """Return the lines of a table: what each side does."""
    lines = ["| situation | rmqtools | gRPC client |", "|---|---|---|"]
    for scenario, run in SCENARIOS.items():
        cells = [
            "; ".join(f"{name}: {_cell(value)}" for name, value in stage.run(side, scenario).items())
            for side in ("ours", "grpc")
        ]
        lines.append(f"| {(run.__doc__ or '').splitlines()[0]} | {' | '.join(cells)} |")
    return lines


def rates(stage: Stage, rounds: int, totals: Mapping[str, int]) -> list[str]:
    """Return the lines of a table: messages a second, and CPU of a message, medians of the rounds."""
    seen: dict[str, list[tuple[float, float]]] = {side: [] for side in _SIDES}
    for turn in range(rounds):
        for side in _SIDES if turn % 2 == 0 else reversed(_SIDES):
            found = stage.run(side, "rate", totals[side])
            if "error" in found:
                raise SystemExit(f"{side}: {found['error']}")
            count = float(str(found["count"]))
            rate, cpu = count / float(str(found["seconds"])), float(str(found["cpu"])) / count * 1e6
            seen[side].append((rate, cpu))
    lines = [
        "| receive + ack of 32 | messages/s | CPU of the client, us a message | rounds |",
        "|---|---|---|---|",
    ]
    for side, rows in seen.items():
        rate, cpu = (statistics.median(column) for column in zip(*rows, strict=True))
        each = ", ".join(f"{row[0]:,.0f}" for row in rows)
        lines.append(f"| {side} | {rate:,.0f} | {cpu:,.0f} | {each} |")
    return lines


def _cell(value: object) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=20_000, help="a round of ours; gRPC: a tenth")
    parser.add_argument("--only", choices=("behaviours", "rates"))
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        cluster = stack.enter_context(LocalCluster(timer_wheel=True))
        proxy = stack.enter_context(running_server(cluster, Path(folder)))
        address, endpoint = cluster.name_server, f"{LOOPBACK}:{proxy.settings['grpcServerPort']}"
        admin = stack.enter_context(Admin(ClientConfig(name_server=address)))
        config = ProducerConfig(name_server=address, group="single", send_timeout=10.0)
        producer = stack.enter_context(Producer(config))
        stage = Stage(admin, producer, {"ours": address, "grpc": endpoint}, folder)
        if given.only != "rates":
            print("\n".join(behaviours(stage)), flush=True)
        if given.only != "behaviours":
            most = given.messages
            totals = {"ours": most, "ours-batched": most, "grpc": most // 10}
            print("\n".join(["", *rates(stage, given.rounds, totals)]), flush=True)


if __name__ == "__main__":
    main()
