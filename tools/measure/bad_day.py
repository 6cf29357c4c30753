"""``python -m tools.measure.bad_day``: one trouble after another on a cluster; who says so, and how late.

Three brokers and three groups. A listener hangs, subscriptions differ, messages become dead letters, a broker
is drained, the disk of another is nearly full, the third dies; what went wrong stays so. After each it asks
until they say it, or for ``--longest`` seconds: ``rmqtools group check`` and ``health`` (a new process each
time, as an operator types it), ``rmqtools top`` (which runs all day long), and the command of ``mqadmin``
that shows most of it. Prints a table in Markdown: the seconds since the trouble, and the line that says it.

The disk is one of memory, of broker-b alone; it needs root, else that trouble is left out, and named.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig, PushConsumer, PushConsumerConfig
from rmqtools.cli.top.app import TopApp
from rmqtools.cli.top.findings_list import FindingsList
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.cluster import LocalCluster
from rmqtools.errors import RocketMQError
from tests.support.command_line import rmqtools_program
from tests.support.java_peer import JavaPeer
from tests.support.mqadmin import Mqadmin

_TOPIC, _OTHER = "orders", "invoices"
_LONGEST = 180.0  # seconds until a tool counts as saying nothing, by default
_PAUSE = 1.0
_DISK_BYTES = 400 * 1024 * 1024
_FULL = 0.88  # brokers delete from 85 % on, and refuse from 95 % on in a local cluster
_SMALL_DISK, _DRAINED, _DEAD = "broker-b", "broker-a", "broker-c"

Says = Callable[[str], str]
"""Takes what a tool prints, and returns the line that says it; "" if none does."""


@dataclass(frozen=True)
class _Trouble:
    """One trouble, and how each tool would say it."""

    name: str
    make: Callable[[], None]
    group: str  # for ``group check``
    words: str  # a part of our tools' lines
    mqadmin: Sequence[str]
    mqadmin_says: Says


@dataclass
class _Day:
    """The cluster and all that runs on it, until the stack is closed."""

    cluster: LocalCluster
    admin: Admin
    mqadmin: Mqadmin
    stack: ExitStack
    disk: Path | None
    longest: float
    hold: Event = field(default_factory=Event)

    def address(self, broker: str) -> str:
        return self.cluster.broker_addrs[broker]

    def join(self, group: str, topic: str, listener: Any, instance: str = "one", **settings: Any) -> None:
        config = PushConsumerConfig(
            name_server=self.cluster.name_server, group=group, instance_name=instance, **settings
        )
        member = PushConsumer(config)
        member.subscribe(topic, listener)
        self.stack.enter_context(member)

    def hang(self) -> None:
        def hangs(messages: object, context: object) -> None:
            self.hold.wait()

        self.join("hangs", _TOPIC, hangs, consume_threads=2)
        self._send(_TOPIC, 30)

    def differ(self) -> None:
        for instance, topic in (("one", _TOPIC), ("two", _OTHER)):
            self.join("differs", topic, lambda messages, context: None, instance)

    def fail(self) -> None:
        def fails(messages: object, context: object) -> None:
            raise ValueError("no such order")

        self.join("fails", _OTHER, fails, max_reconsume_times=0)
        self._send(_OTHER, 30)

    def drain(self) -> None:
        self._run("broker", "drain", _DRAINED, "--yes", "--timeout", "1", "--interval", "1")

    def fill(self) -> None:
        assert self.disk is not None
        free = os.statvfs(self.disk)
        used = (free.f_blocks - free.f_bfree) * free.f_frsize
        (self.disk / "filler").write_bytes(b"x" * int(_FULL * free.f_blocks * free.f_frsize - used))

    def die(self) -> None:
        self.cluster.kill_server(_DEAD)

    def _run(self, *arguments: str) -> str:
        done = rmqtools_program(*arguments, NAMESRV_ADDR=self.cluster.name_server)
        return done.stdout + done.stderr

    def _send(self, topic: str, count: int) -> None:
        with Producer(ProducerConfig(name_server=self.cluster.name_server, group="day")) as producer:
            for number in range(count):
                producer.send(Message(topic, b"%d" % number))

    def tools(self, trouble: _Trouble, top: TopApp) -> Mapping[str, Callable[[], Awaitable[str]]]:
        """Return, by tool, what asks it once and returns the line that says the trouble."""
        ours = partial(_line_with, trouble.words)

        async def asked(says: Says, *arguments: str) -> str:
            return says(await asyncio.to_thread(self._run, *arguments))

        async def admin_asked() -> str:
            with suppress(subprocess.TimeoutExpired):
                return trouble.mqadmin_says(await asyncio.to_thread(self.mqadmin.run, *trouble.mqadmin))
            return ""

        async def seen() -> str:
            shown = top.screen_stack[0].query_one(FindingsList)
            prompts = (shown.get_option_at_index(place).prompt for place in range(shown.option_count))
            return ours("\n".join(str(prompt).replace("\n", " ") for prompt in prompts))

        return {
            "group check": lambda: asked(ours, "group", "check", trouble.group),
            "health --brokers 3": lambda: asked(ours, "health", "--brokers", "3"),
            "top": seen,
            "mqadmin": admin_asked,
        }


def _troubles(day: _Day) -> Iterator[_Trouble]:
    """Yield them in the order of the day."""
    yield _Trouble(
        name="a listener hangs",
        make=day.hang,
        group="hangs",
        words="listener_slow|queue_blocked",
        mqadmin=("consumerStatus", "-g", "hangs", "-s", "true"),
        mqadmin_says=partial(_line_with, "maybe blocked"),
    )
    yield _Trouble(
        name="two members with different subscriptions",
        make=day.differ,
        group="differs",
        words="subscri",
        mqadmin=("consumerStatus", "-g", "differs"),
        mqadmin_says=partial(_line_with, "(?i)different subscription"),
    )
    yield _Trouble(
        name="messages become dead letters",
        make=day.fail,
        group="fails",
        words="dead letter",
        mqadmin=("topicStatus", "-t", "%DLQ%fails"),
        mqadmin_says=partial(_line_with, r"%DLQ%fails +\d+ +0 +[1-9]|^broker-. +\d+ +0 +[1-9]"),
    )
    yield _Trouble(
        name="a broker is drained",
        make=day.drain,
        group="differs",
        words=f"{_DRAINED}.*read-only",
        mqadmin=("topicRoute", "-t", _TOPIC),
        mqadmin_says=partial(_line_with, '"perm":4'),
    )
    if day.disk is not None:
        yield _Trouble(
            name="a disk is nearly full",
            make=day.fill,
            group="differs",
            words=f"{_SMALL_DISK}.*disk",
            mqadmin=("brokerStatus", "-b", day.address(_SMALL_DISK)),
            mqadmin_says=partial(_line_with, r"commitLogDiskRatio *: *0\.(8[5-9]|9)"),
        )
    yield _Trouble(
        name="a broker dies",
        make=day.die,
        group="differs",
        words=f"broker_gone.*{_DEAD}|masters answer, want",
        mqadmin=("clusterList",),
        mqadmin_says=lambda text: "" if _DEAD in text or "broker-a" not in text else "its row is gone",
    )


def _line_with(words: str, text: str) -> str:
    """Return the first line in which the pattern is found, as one line; "" if none."""
    found = (line for line in text.splitlines() if re.search(words, line))
    return " ".join(next(found, "").split())


async def _watch(day: _Day, trouble: _Trouble, top: TopApp) -> dict[str, str]:
    """Make the trouble, and return what each tool says and after how long."""
    begin = SYSTEM_CLOCK.monotonic()
    await asyncio.to_thread(trouble.make)
    made = SYSTEM_CLOCK.monotonic()

    async def until_it_says(ask: Callable[[], Awaitable[str]]) -> str:
        while SYSTEM_CLOCK.monotonic() - begin < day.longest:
            if line := await ask():
                return f"{max(SYSTEM_CLOCK.monotonic() - made, 0.0):.0f} s: {line[:150]}"
            await asyncio.sleep(_PAUSE)
        return "–"

    tools = day.tools(trouble, top)
    said = await asyncio.gather(*map(until_it_says, tools.values()))
    return dict(zip(tools, said, strict=True))


@contextmanager
def _day(longest: float) -> Iterator[_Day]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bad-day-")))
        disk = stack.enter_context(_small_disk(directory / _SMALL_DISK))
        cluster = stack.enter_context(LocalCluster(brokers=3, directory=directory))
        admin = stack.enter_context(Admin(ClientConfig(name_server=cluster.name_server)))
        for topic in (_TOPIC, _OTHER):
            admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2)
        mqadmin = Mqadmin(JavaPeer.compiled(), cluster.name_server)
        members = stack.enter_context(ExitStack())
        day = _Day(cluster, admin, mqadmin, members, disk, longest)
        stack.callback(day.hold.set)
        yield day


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path | None]:
    """Mount a disk of memory at a folder; None if this user may not."""
    folder.mkdir()
    size = f"size={_DISK_BYTES}"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


async def _run(day: _Day, only: str) -> None:
    top = TopApp(ClientConfig(name_server=day.cluster.name_server))
    out = sys.stdout  # the view replaces it
    print("| trouble | tool | after, and what it says |\n|---|---|---|", file=out, flush=True)
    async with top.run_test(size=(120, 40)):
        while not top._rows.get("brokers"):  # noqa: ASYNC110 - no event; what it has not seen it cannot miss
            await asyncio.sleep(_PAUSE)
        for trouble in _troubles(day):
            if only in trouble.name:
                for tool, said in (await _watch(day, trouble, top)).items():
                    print(f"| {trouble.name} | {tool} | {said} |", file=out, flush=True)
    if day.disk is None:
        print("left out: a disk is nearly full (a disk of memory needs root)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the day; return 0."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure.bad_day", description=__doc__)
    parser.add_argument("--only", default="", help="troubles with this in their name")
    parser.add_argument(
        "--longest", type=float, default=_LONGEST, help="seconds until a tool counts as silent (%(default)s)"
    )
    chosen = parser.parse_args(arguments)
    try:
        with _day(chosen.longest) as day:
            asyncio.run(_run(day, chosen.only))
    except RocketMQError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
