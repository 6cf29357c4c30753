"""Rates and costs against queues, brokers, body size, readers and backlog: what must stay flat.

Client CPU per message is to be flat at an equal number of messages a pull; memory whatever grows.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from tools.measure.bench.broker import Broker, running_broker
from tools.measure.bench.program import Program, Round, log_path

_MESSAGES = 100_000
_WARM_UP = 3  # topics that are filled before a broker counts as warm
_BYTES = 128 * 1024 * 1024  # of a backlog of large bodies
_FORM = "{:<10} {:>9} {:>10} {:>10} {:>8} {:>9} {:>8} {:>6}"
_HEAD = ("grows", "to", "write/s", "read/s", "CPU us", "broker us", "RSS MB", "others")


def print_scaling(*, largest_backlog: int) -> None:
    """Run and print them all; a few minutes."""
    print(_FORM.format(*_HEAD))
    with _warm_broker() as broker:
        for queues in (1, 4, 16, 64):
            _line(broker, "queues", queues, queues=queues)
        for size in (1, 100, 1024, 16 * 1024, 256 * 1024, 1024 * 1024):
            _line(broker, "body bytes", size, size=size, count=min(_MESSAGES, _BYTES // size))
        size = 1024 * 1024
        _line(broker, "zlib bytes", size, size=size, count=_BYTES // size, compression="zlib")
        for processes in (1, 2, 4):
            _line(broker, "readers", processes, processes=processes)
        count = 10_000
        while count <= largest_backlog:
            _line(broker, "backlog", count, count=count)
            count *= 10
    for brokers in (1, 2, 3):
        with _warm_broker(brokers=brokers) as broker:
            _line(broker, "brokers", brokers)


@contextmanager
def _warm_broker(*, brokers: int = 1) -> Iterator[Broker]:
    """Run brokers that have stored enough to be compiled: cold ones take a tenth of the rate."""
    with running_broker(brokers=brokers) as broker:
        for number in range(_WARM_UP):
            broker.fill(f"bench-warm-up-{number}", size=100, count=brokers * _MESSAGES)
        yield broker


def _line(
    broker: Broker,
    what: str,
    number: int,
    *,
    queues: int = 8,
    size: int = 100,
    count: int = _MESSAGES,
    processes: int = 1,
    compression: Literal["zlib", "none"] = "none",
) -> None:
    topic = f"bench-{what.replace(' ', '-')}-{number}"
    written = broker.fill(topic, size=size, count=count, queues=queues, compression=compression)
    with _reader(broker) as program:
        best: Round | None = None
        for _ in range(3):
            done = program.ask("arrow", topic=topic, processes=processes, threads=1, columns="all")
            best = done if best is None or done.cpu_us < best.cpu_us else best
        rss = program.resident_bytes()
    assert best is not None
    assert best.count == count
    cells = (
        what,
        f"{number:,}",
        f"{written:,.0f}",
        f"{best.rate:,.0f}",
        f"{best.cpu_us:.2f}",
        f"{best.broker_cpu_us:.2f}",
        f"{rss / 1e6:.0f}",
        f"{best.others:.2f}",
    )
    print(_FORM.format(*cells), flush=True)


@contextmanager
def _reader(broker: Broker) -> Iterator[Program]:
    """Start a fresh process: its memory is what is looked at."""
    command = [sys.executable, "-m", "tools.measure.bench.ours", broker.name_server]
    with Program(command, broker_pid=broker.pid, log=log_path("scaling")) as program:
        yield program
    log_path("scaling").unlink(missing_ok=True)
