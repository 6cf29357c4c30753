"""``python -m tools.measure.healthy_day``: the doctor's false alarms on a cluster that is well.

Two masters with a slave each, two name servers; groups of two members that push, push in order, pop, poll
and broadcast. A day in phases: quiet, a few messages, load, members and servers restarted one after the
other, a name server down, the clock of this machine wrong. Every ``--interval`` seconds it looks at the
servers and at each group, as ``health``, ``group check``, ``top`` and the exporter do. A phase names what is
true in it (a broker that is down is silent); any other finding is a false alarm. Prints a table in Markdown.
Exit code 1: there was a false one.
"""

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rmqtools import (
    Admin,
    ClientConfig,
    Message,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    aio,
)
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.cluster import LocalCluster
from rmqtools.cluster.ports import LOOPBACK, PortPicker
from rmqtools.errors import RemotingError, RocketMQError
from rmqtools.group import GroupLimits, MessageRequestMode
from tests.support.name_servers import NameServers

_TOPIC = "day-orders"
_KINDS = ("push", "ordered", "popped", "polled", "broadcast")
_MEMBERS = ("one", "two")
_AGAIN = 40.0  # seconds in which servers and members find each other after a restart
_BETWEEN = 1.0  # seconds in which an old member and the new one run
_RESTARTED = frozenset(
    {
        *("broker_silent", "master_missing", "broker_inactive", "broker_gone", "name_server_incomplete"),
        "member_idle",  # the broker that shares the queues of a group that pops does not know all yet
        "queue_unowned",  # a group in order locks queues again within 20 s after their broker is back
    }
)
_WRONG = 600.0  # seconds by which a clock is wrong

Consumer = PushConsumer | PullConsumer


@dataclass(frozen=True)
class _Clock:
    """The system's clock, wrong by some seconds."""

    seconds: float = 0.0

    def now_ms(self) -> int:
        return SYSTEM_CLOCK.now_ms() + int(self.seconds * 1000)

    def monotonic(self) -> float:
        return SYSTEM_CLOCK.monotonic()

    def nanos(self) -> int:
        return SYSTEM_CLOCK.nanos()


@dataclass(frozen=True, kw_only=True)
class _Phase:
    """A part of the day: what is done in it, and what is true of it."""

    name: str
    act: Callable[[], None]
    true: frozenset[str] = frozenset()  # kinds
    settle: float = 0.0  # seconds after the act for which they are true
    clock: _Clock = field(default_factory=_Clock)


@dataclass
class Looks:
    """Findings of a phase, and how often each came."""

    count: int = 0
    true: Counter[str] = field(default_factory=Counter)
    false: Counter[str] = field(default_factory=Counter)

    async def add(
        self, client: aio.Client, groups: Sequence[str], limits: GroupLimits, true: frozenset[str]
    ) -> None:
        """Look once, at the servers and all groups, as the tools that go on looking do."""
        self.count += 1
        admin = aio.Admin(client, partial=True)
        servers = asyncio.create_task(admin.check_cluster())
        checks = await asyncio.gather(*(admin.check_group(name, limits=limits, ages=True) for name in groups))
        found = [("servers", each) for each in (await servers).findings]
        found += [(name, each) for name, check in zip(groups, checks, strict=True) for each in check.findings]
        for name, each in found:
            if each.kind.value in true:
                self.true[each.kind.value] += 1
            else:
                self.false[f"{name}: {each.kind.value}: {each.text}"] += 1


class Day:
    """A cluster with its members, until the stack is closed.

    Args:
        name_server: those of the clients.
        stack: what ends with the day.
        quiet: seconds without messages, and of load.
        cluster: None: its servers are left alone, and no group pops.
        extra: the first name server of the clients; None: it is left alone.
    """

    def __init__(
        self,
        name_server: str,
        stack: ExitStack,
        *,
        quiet: float,
        cluster: LocalCluster | None = None,
        extra: NameServers | None = None,
    ) -> None:
        self.name_server = name_server
        self.groups = [f"day-{kind}" for kind in _KINDS if cluster is not None or kind != "popped"]
        self._cluster, self._extra, self._quiet, self._stack = cluster, extra, quiet, stack
        self._members: dict[tuple[str, str], ExitStack] = {}

    def begin(self) -> None:
        """Make the topic and the groups, and let all members join."""
        with Admin(ClientConfig(name_server=self.name_server)) as admin:
            admin.create_topic(_TOPIC, read_queue_nums=4, write_queue_nums=4)
            for group in self.groups:
                admin.create_group(group)
            if "day-popped" in self.groups:
                admin.set_message_request_mode(_TOPIC, "day-popped", MessageRequestMode.POP)
        for group in self.groups:
            for name in _MEMBERS:
                self._join(group, name)

    def phases(self) -> Iterator[_Phase]:
        """Yield them in the order of the day."""
        yield _Phase(name="members join", act=lambda: self.send(16))
        yield _Phase(name="quiet", act=lambda: time.sleep(self._quiet))
        yield _Phase(name="a few messages after the quiet", act=lambda: self.send(16))
        yield _Phase(name="load", act=lambda: self.load(self._quiet))
        yield _Phase(name="members are restarted", act=self.deploy)
        if self._extra is not None:
            silent = frozenset({"name_server_silent"})
            yield _Phase(name="a name server is down", act=self._stop_name_server, true=silent)
            true = silent | {"name_server_incomplete"}
            yield _Phase(name="it is started again", act=self._start_name_server, true=true, settle=_AGAIN)
        if self._cluster is not None:
            yield _Phase(name="brokers are restarted", act=self._restart, true=_RESTARTED, settle=_AGAIN)
        for seconds in (_WRONG, -_WRONG):
            name = f"this machine's clock is {_WRONG:.0f} s {'ahead' if seconds > 0 else 'behind'}"
            true, clock = frozenset({"clock_differs"}), _Clock(seconds)
            yield _Phase(name=name, act=lambda: self.load(self._quiet / 2), true=true, clock=clock)

    def send(self, count: int) -> None:
        """Send some messages, spread over all queues."""
        with Producer(ProducerConfig(name_server=self.name_server, group="day")) as producer:
            for number in range(count):
                producer.send(Message(_TOPIC, b"%d" % number))

    def load(self, seconds: float, *, until: threading.Event | None = None) -> None:
        """Send for some seconds, or until an event is set; a broker may be down meanwhile."""
        end, is_over = SYSTEM_CLOCK.monotonic() + seconds, until or threading.Event()
        with Producer(ProducerConfig(name_server=self.name_server, group="day")) as producer:
            while SYSTEM_CLOCK.monotonic() < end and not is_over.wait(0.05):
                try:
                    producer.send_many([Message(_TOPIC, b"x" * 100) for _ in range(20)])
                except RocketMQError as error:
                    print(error, file=sys.stderr)

    def deploy(self) -> None:
        """Replace each member under load: the new one joins first."""
        with self._under_load():
            for group, name in [*self._members]:
                old = self._members.pop((group, name))
                self._join(group, f"{name}-new")
                time.sleep(_BETWEEN)
                old.close()

    def _restart(self) -> None:
        assert self._cluster is not None
        with self._under_load():
            for server in self._cluster.servers[1:]:
                self._cluster.stop_server(server.name)
                time.sleep(2.0)
                self._cluster.start_server(server.name)
                time.sleep(5.0)

    def _stop_name_server(self) -> None:
        assert self._extra is not None
        self._extra.kill(0)
        time.sleep(min(self._quiet, 30.0))

    def _start_name_server(self) -> None:
        assert self._extra is not None
        self._extra.start(0)

    @contextmanager
    def _under_load(self) -> Iterator[None]:
        is_over = threading.Event()
        sender = threading.Thread(target=self.load, args=(3600.0,), kwargs={"until": is_over})
        sender.start()
        try:
            yield
        finally:
            is_over.set()
            sender.join()

    def _join(self, group: str, name: str) -> None:
        stack = self._members[group, name] = self._stack.enter_context(ExitStack())
        common: dict[str, Any] = {
            "name_server": self.name_server,
            "group": group,
            "instance_name": f"{group}-{name}",
        }
        if group == "day-polled":
            puller = PullConsumer(PullConsumerConfig(**common))
            puller.subscribe(_TOPIC)
            is_over = threading.Event()
            poller = threading.Thread(target=_poll, args=(puller, is_over))
            stack.callback(puller.close)
            stack.callback(poller.join)
            stack.callback(is_over.set)
            puller.start()
            poller.start()
            return
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="healthy-day-offsets-"))
        own: dict[str, dict[str, Any]] = {
            "day-ordered": {"orderly": True},
            "day-popped": {"client_rebalance": False},
            "day-broadcast": {
                "message_model": "BROADCASTING",
                "offset_store_path": str(Path(folder) / "offsets.json"),
            },
        }
        pusher = PushConsumer(PushConsumerConfig(**common, **own.get(group, {})))
        pusher.subscribe(_TOPIC, lambda messages, context: None)
        stack.enter_context(pusher)


def _poll(consumer: PullConsumer, is_over: threading.Event) -> None:
    while not is_over.is_set():
        with suppress(RemotingError):  # a broker is being restarted: the next poll commits
            if consumer.poll(1.0):
                consumer.commit()


async def watch(day: Day, phase: _Phase, *, interval: float, limits: GroupLimits) -> Looks:
    """Look again and again while a phase lasts, and once after it."""
    looks, until = Looks(), None
    act = asyncio.create_task(asyncio.to_thread(phase.act))
    client = aio.Client(ClientConfig(name_server=day.name_server))
    client._client.clock = phase.clock
    async with client:
        while until is None or SYSTEM_CLOCK.monotonic() < until:
            if act.done() and until is None:
                until = SYSTEM_CLOCK.monotonic() + phase.settle
            await looks.add(client, day.groups, limits, phase.true)
            await asyncio.wait([act], timeout=interval) if not act.done() else await asyncio.sleep(interval)
        await act
        await looks.add(client, day.groups, limits, frozenset() if phase.settle else phase.true)
    return looks


@contextmanager
def _day(quiet: float) -> Iterator[Day]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="healthy-day-")))
        extra = stack.enter_context(NameServers(directory / "extra", 1))
        port = PortPicker().name_server_port(None)
        cluster = stack.enter_context(
            LocalCluster(
                brokers=2,
                slaves=1,
                directory=directory / "cluster",
                name_server_port=port,
                timer_wheel=True,
                broker_settings={"namesrvAddr": f"{LOOPBACK}:{port};{extra.name_server}"},
            )
        )
        name_server = f"{extra.name_server};{cluster.name_server}"
        members = stack.enter_context(ExitStack())
        yield Day(name_server, members, quiet=quiet, cluster=cluster, extra=extra)


async def run(day: Day, *, interval: float, limits: GroupLimits, only: str = "") -> list[str]:
    """Run the day, print its table, and return the false alarms."""
    print("| phase | looks | true | false |\n|---|---|---|---|", flush=True)
    found: list[str] = []
    await asyncio.to_thread(day.begin)
    for phase in day.phases():
        if only in phase.name:
            looks = await watch(day, phase, interval=interval, limits=limits)
            found += looks.false
            texts = (
                ", ".join(f"{key} ({count})" for key, count in each.items())
                for each in (looks.true, looks.false)
            )
            print(
                f"| {phase.name} | {looks.count} | {' | '.join(text or '–' for text in texts)} |", flush=True
            )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the day; return 0, or 1 if there was a false alarm."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.healthy_day", description=__doc__)
    parser.add_argument("--only", default="", help="phases with this in their name")
    parser.add_argument("--interval", type=float, default=10.0, help="seconds between looks (%(default)s)")
    parser.add_argument(
        "--quiet", type=float, default=90.0, help="seconds without messages, and of load (%(default)s)"
    )
    parser.add_argument("--limit", type=float, help="seconds from which a member counts as stuck")
    chosen = parser.parse_args(arguments)
    limits = GroupLimits() if chosen.limit is None else GroupLimits(listener=chosen.limit, fetch=40.0)
    try:
        with _day(chosen.quiet) as day:
            found = asyncio.run(run(day, interval=chosen.interval, limits=limits, only=chosen.only))
    except RocketMQError as error:
        print(error, file=sys.stderr)
        return 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
