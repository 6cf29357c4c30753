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

_LOOK = 0.25  # seconds between two looks at the clock and the parent
_MOST = 1000


def burn(parent: int, seconds: float) -> None:
    """Keep one processor busy until the time is over or the parent has ended."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
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

    def leave(number: int, frame: FrameType | None) -> None:
        for each in kept:
            signal.signal(each, signal.SIG_IGN)  # a second signal must not interrupt the end
        raise SystemExit(128 + number)

    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in kept:
        signal.signal(number, leave)
    try:
        for worker in workers:
            worker.start()
        print(f"load of {processes} processes for {seconds:g} s", flush=True)
        parent, pause = os.getppid(), threading.Event()
        while any(worker.is_alive() for worker in workers) and os.getppid() == parent:
            pause.wait(_LOOK)
    finally:
        for worker in workers:
            if worker.pid is not None:
                worker.terminate()
                worker.join()
        for number, handler in kept.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    given = parse(sys.argv[1:])
    run(given.processes, given.seconds)
