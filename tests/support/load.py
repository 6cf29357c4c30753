"""Load beside a test run: busy processes that end after a time, on SIGTERM, or with their parent.

    python -m tests.support.load 10 --seconds 3600

Each process competes for one processor; more processes than processors slow the run down.
"""

import argparse
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

_LOOK = 0.25  # seconds between two looks at the clock and the parent
_MOST = 1000


def end_on_signals() -> None:
    """Restore the default actions of SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def burn(parent: int, seconds: float) -> None:
    """Keep one processor busy until the time is over or the parent has ended."""
    end_on_signals()
    end = time.monotonic() + seconds
    while time.monotonic() < end and os.getppid() == parent:
        look = time.monotonic() + _LOOK
        while time.monotonic() < look:
            pass


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return ``processes`` and ``seconds``; exit with 2 where they are out of bounds."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.load", description=__doc__)
    parser.add_argument("processes", type=int, metavar="N", help=f"busy processes, 1 to {_MOST}")
    parser.add_argument("--seconds", type=float, default=3600.0, help="time until they end (3600)")
    parsed = parser.parse_args(arguments)
    if not 1 <= parsed.processes <= _MOST:
        parser.error(f"N = {parsed.processes}: want 1 to {_MOST}")
    if not 0 < parsed.seconds <= 86_400:
        parser.error(f"--seconds {parsed.seconds}: want more than 0, at most 86400")
    return parsed


def run(processes: int, seconds: float, *, work: Callable[[int, float], None] = burn) -> None:
    """Run ``work(parent, seconds)`` in so many processes; stop those left on SIGTERM or SIGINT."""
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=work, args=(os.getpid(), seconds), daemon=True) for _ in range(processes)
    ]

    stopped_by: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        stopped_by.append(number)  # raising here could leave a process that is just being started

    kept = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        _watch(workers, stopped_by)
    finally:
        for worker in workers:
            if worker.pid is not None:
                _end(worker)
        for number, handler in kept.items():
            signal.signal(number, handler)
    if stopped_by:
        raise SystemExit(128 + stopped_by[0])


def _end(worker: Any) -> None:
    """Terminate a process; again if the signal came before :func:`end_on_signals`."""
    while worker.is_alive():
        worker.terminate()
        worker.join(_LOOK)


def _watch(workers: Sequence[Any], stopped_by: Sequence[int]) -> None:
    """Start the processes; return when they have ended, the parent has ended or a signal has come."""
    parent, pause = os.getppid(), threading.Event()
    for worker in workers:
        worker.start()
    print(f"load of {len(workers)} processes", flush=True)
    while any(worker.is_alive() for worker in workers) and os.getppid() == parent and not stopped_by:
        pause.wait(_LOOK)


if __name__ == "__main__":
    given = parse(sys.argv[1:])
    run(given.processes, given.seconds)
