"""Start four members, pin one, see that only it consumes, unpin. Ends with exit code 1 if anything differs.

python -m examples.staging_pinned.staging --name-server 127.0.0.1:9876
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.group import GroupView

IPS = ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
PINNED = "10.0.0.2"
ORDERS = 40  # messages of each phase
PATIENCE = 90.0  # seconds


class Staging:
    """The members, what they have printed so far, and the group as brokers see it."""

    def __init__(self, name_server: str, topic: str, group: str, folder: Path) -> None:
        self._name_server = name_server
        self._topic = topic
        self._group = group
        self._folder = folder
        self._admin = Admin(ClientConfig(name_server=name_server))
        self._producer = Producer(ProducerConfig(name_server=name_server, group="staging-orders"))

    @contextmanager
    def started(self) -> Iterator[None]:
        """Make the topic, start the members, and stop them in the end."""
        with self._admin, self._producer, ExitStack() as stack:
            self._admin.create_topic(self._topic, read_queue_nums=8, write_queue_nums=8)
            for ip in IPS:
                stack.enter_context(self._member(ip))
            yield

    @contextmanager
    def _member(self, ip: str) -> Iterator[None]:
        module = "examples.staging_pinned.member"
        options = ("--name-server", self._name_server, "--ip", ip, "--topic", self._topic)
        with (self._folder / ip).open("wb") as out:
            command = [sys.executable, "-m", module, *options, "--group", self._group]
            process = subprocess.Popen(command, stdout=out)
        try:
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE)

    def phase(self, name: str, owners: Sequence[str]) -> None:
        """Wait until these machines own all queues; send orders; print who got them."""
        wait(f"{name}: {', '.join(owners)} own all queues", lambda: self._owners() == set(owners))
        before = self._received()
        for number in range(ORDERS):
            self._producer.send(Message(self._topic, f"{name}, order {number}".encode()))
        total = sum(before.values()) + ORDERS
        wait(f"{name}: {total} orders are consumed", lambda: sum(self._received().values()) >= total)
        got = {ip: count - before[ip] for ip, count in self._received().items()}
        print(f"{name}: " + ", ".join(f"{ip} got {count}" for ip, count in got.items()), flush=True)
        if {ip for ip, count in got.items() if count} != set(owners) or sum(got.values()) != ORDERS:
            raise SystemExit(f"{name}: wanted {ORDERS} orders, all at {', '.join(owners)}")

    def command(self, *arguments: str) -> None:
        """Run a command of rmqtools, and show it."""
        print("\n$ rmqtools", *arguments, flush=True)
        program = Path(sys.executable).with_name("rmqtools")
        subprocess.run([program, *arguments, "--name-server", self._name_server], check=True)

    def _owners(self) -> set[str]:
        """Return the machines that own queues; empty while a queue has no owner, or two."""
        view = self._admin.fetch_group(self._group)
        owners = [view.owners(queue) for queue in view.progress if queue.topic == self._topic]
        return machines(view) if owners and all(len(each) == 1 for each in owners) else set()

    def _received(self) -> dict[str, int]:
        return {ip: len((self._folder / ip).read_bytes().splitlines()) for ip in IPS}


def machines(view: GroupView) -> set[str]:
    """Return the addresses of the members that own queues other than those of retries."""
    busy = [m for m in view.members if any(not queue.topic.startswith("%RETRY%") for queue in m.queues)]
    return {member.client_id.partition("@")[0] for member in busy}


def wait(what: str, condition: Callable[[], bool]) -> None:
    """Wait until a condition holds.

    Raises:
        SystemExit: it did not in time.
    """
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"after {PATIENCE:.0f} s not yet: {what}")
        time.sleep(0.2)


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="It is created.")] = "Staging",
    group: Annotated[str, typer.Option(help="Its name must begin with staging-.")] = "staging-billing",
) -> None:
    """Show that one staging machine can get all messages of a group for a while."""
    with TemporaryDirectory() as folder:
        staging = Staging(name_server, topic, group, Path(folder))
        with staging.started():
            staging.phase("shared", IPS)
            pin = ("--ip", PINNED, "--when-absent", "nobody", "--allowed-groups", "staging-*")
            staging.command("pin", "set", "--group", group, *pin)
            staging.phase("pinned", [PINNED])
            staging.command("group", "show", group)
            staging.command("pin", "clear", "--group", group)
            staging.phase("shared again", IPS)


if __name__ == "__main__":
    typer.run(main)
