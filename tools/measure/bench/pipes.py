"""``python -m tools.measure.bench.pipes``: ``produce`` and ``consume`` beside loops over the library.

Both sides are processes that begin with nothing: lines of a file go to a topic of a local cluster, from there
to another file, and through a pipe into another topic. They take turns; the ratio of their median rates
counts, not the rates.
"""

import argparse
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from rmqtools import Admin, Client, ClientConfig, Message, Producer, ProducerConfig, QueueRange
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.cluster import LocalCluster

WANTED = 0.7
DIRECTIONS = ("produce", "consume", "consume | produce")
_AT_ONCE = 10_000  # messages of a send_many of the loop
_COMMAND = (sys.executable, "-c", "from rmqtools.cli import main; main()")
_LOOP = (sys.executable, "-m", "tools.measure.bench.pipes")


def send_lines(name_server: str, topic: str) -> None:
    """Send line by line, as a user would write it instead of ``produce``."""
    with Producer(ProducerConfig(name_server=name_server, group="loop")) as producer:
        while lines := [*islice(sys.stdin.buffer, _AT_ONCE)]:
            producer.send_many([Message(topic, line.rstrip(b"\n")) for line in lines])


def print_bodies(name_server: str, topic: str) -> None:
    """Print body by body, as a user would write it instead of ``consume``."""
    config = ClientConfig(name_server=name_server)
    with Admin(config) as admin, Client(config) as client:
        for queue in admin.fetch_subscribe_queues(topic):
            range_ = QueueRange(queue, admin.min_offset(queue), admin.max_offset(queue))
            for messages in client.read_messages(range_):
                sys.stdout.buffer.write(b"".join(message.body + b"\n" for message in messages))


LOOPS: dict[str, Callable[[str, str], None]] = {"send": send_lines, "print": print_bodies}


def _line(side: str, what: str, topic: str, address: str) -> tuple[str, ...]:
    if side == "loop":
        return (*_LOOP, "--loop", what, topic, address)
    return (*_COMMAND, {"send": "produce", "print": "consume"}[what], topic, "-n", address)


def seconds_of(command: tuple[str, ...], source: Path | None, target: Path) -> float:
    """Run a process from a file to a file."""
    with (source or Path("/dev/null")).open("rb") as given, target.open("wb") as taken:
        began = SYSTEM_CLOCK.monotonic()
        subprocess.run(command, stdin=given, stdout=taken, check=True)
        return SYSTEM_CLOCK.monotonic() - began


def compare(lines: int, rounds: int) -> dict[str, float]:
    """Return by direction the rate of the command as a share of the loop's."""
    with tempfile.TemporaryDirectory() as folder, LocalCluster() as cluster:
        source, taken, address = Path(folder, "lines"), Path(folder, "taken"), cluster.name_server
        source.write_text("".join(f"{number}\n" for number in range(lines)))
        wanted = sorted(source.read_bytes().splitlines())
        taking: dict[str, list[float]] = {}
        for turn in range(rounds):
            for side in ("command", "loop") if turn % 2 else ("loop", "command"):
                topic = f"{side}-{turn}"
                with Admin(ClientConfig(name_server=address)) as admin:
                    for name in (topic, f"{topic}-copy"):
                        admin.create_topic(name, read_queue_nums=4, write_queue_nums=4)
                sends, prints, resends, prints_copy = (
                    _line(side, what, name, address)
                    for name in (topic, f"{topic}-copy")
                    for what in ("send", "print")
                )
                piped = ("sh", "-c", f"{shlex.join(prints)} | {shlex.join(resends)}")
                for direction, command, begin in zip(
                    DIRECTIONS, (sends, prints, piped), (source, None, None), strict=True
                ):
                    spent = seconds_of(command, begin, taken)
                    taking.setdefault(f"{direction} {side}", []).append(spent)
                    print(f"{direction:17} {side:8} {lines / spent:12,.0f} lines/s", flush=True)
                seconds_of(prints_copy, None, taken)
                assert sorted(taken.read_bytes().splitlines()) == wanted
        medians = {name: statistics.median(spent) for name, spent in taking.items()}
        return {each: medians[f"{each} loop"] / medians[f"{each} command"] for each in DIRECTIONS}


def main() -> None:
    """Compare, and say whether the commands are fast enough; exit code 1 if not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loop", nargs=3, metavar=("WHICH", "TOPIC", "ADDRESS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.loop:
        which, topic, address = given.loop
        LOOPS[which](address, topic)
        return
    ratios = compare(given.lines, given.rounds)
    for direction, ratio in ratios.items():
        print(f"{direction}: {ratio:.2f} of the loop's rate, wanted {WANTED}")
    sys.exit(min(ratios.values()) < WANTED)


if __name__ == "__main__":
    main()
