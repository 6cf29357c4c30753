"""``python -m tools.measure.bench.top_cost``: the CPU that ``rmqtools top`` takes, as a share of one core.

The view runs in a terminal of 80 x 24, against a cluster in another process: 200 topics, 50 groups of four
members, the first of which reads all queues.
"""

import argparse
import fcntl
import multiprocessing
import os
import pty
import signal
import struct
import sys
import termios
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from rmqtools import MessageQueue
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.testing import FakeCluster
from tests.unit.cli.top.scene import report_all

WANTED = 20.0  # per cent
_BROKERS = ("broker-a", "broker-b")
_TOPICS, _GROUPS, _MEMBERS = 200, 50, 4
_SETTLE = 10.0  # seconds after a key


def serve(queues: int, pipe: Connection) -> None:
    """Run the cluster until the other end of the pipe is closed."""
    topics = [f"orders-{number:03}" for number in range(_TOPICS)]
    each = queues // _TOPICS // len(_BROKERS)
    with FakeCluster(brokers=_BROKERS) as cluster:
        for topic in topics:
            cluster.create_topic(topic, queues=each)
        for number in range(_GROUPS):
            group, read = f"group-{number:02}", topics[number * 4 - 4 : number * 4] if number else topics
            owned = [
                MessageQueue(name, broker, i) for name in read for broker in _BROKERS for i in range(each)
            ]
            cluster.create_group(group)
            for queue in owned:
                cluster.commit(group, queue, 0)
            for member in range(_MEMBERS):
                cluster.add_member(group, f"10.0.0.{member + 1}@1", report_all(read, owned[member::_MEMBERS]))
        pipe.send(cluster.name_server)
        pipe.poll(None)


class View:
    """The running program, and what it has drawn."""

    def __init__(self, name_server: str) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            program = "from rmqtools.cli import main; main()"
            os.execv(sys.executable, [sys.executable, "-c", program, "top", "-n", name_server])
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.has_drawn = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while data := os.read(self._terminal, 65536):
                if b"group-0" in data:
                    self.has_drawn.set()
        except OSError:  # it has ended
            return

    def press(self, keys: bytes) -> None:
        """Press keys, and let the view settle."""
        os.write(self._terminal, keys)
        threading.Event().wait(_SETTLE)

    def share(self, seconds: float) -> float:
        """Per cent of a core over these seconds."""
        began, before = SYSTEM_CLOCK.monotonic(), self._cpu_seconds()
        threading.Event().wait(seconds)
        return 100 * (self._cpu_seconds() - before) / (SYSTEM_CLOCK.monotonic() - began)

    def _cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the program."""
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)


def main() -> None:
    """Print the share of each view; exit code 1 if one is too high."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=40.0)
    given = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(given.queues, there))
    server.start()
    began = SYSTEM_CLOCK.monotonic()
    view = View(here.recv())
    try:
        assert view.has_drawn.wait(120), "no group was drawn"
        print(f"first picture after {SYSTEM_CLOCK.monotonic() - began:.1f} s, with the start of the cluster")
        shares = {}
        for name, keys in (("groups", b"g"), ("topics", b"t"), ("one group", b"g\r")):
            view.press(keys[:1])
            if keys[1:]:
                view.press(keys[1:])
            shares[name] = view.share(given.seconds)
            print(f"{name}: {shares[name]:.1f} % of a core", flush=True)
    finally:
        view.close()
        here.close()
        server.terminate()
        server.join()
    sys.exit(max(shares.values()) > WANTED)


if __name__ == "__main__":
    main()
