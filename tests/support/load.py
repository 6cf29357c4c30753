"""Load beside a test run: busy processes that end after a time, or with their parent.

    python -m tests.support.load 10 --seconds 3600

Each process competes for one processor; more processes than processors slow the run down.
"""

import argparse
import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence

_LOOK = 0.25  # seconds between two looks at the clock and the parent
_MOST = 1000


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


def run(processes: int, seconds: float) -> None:
    """Keep so many processes busy until the time is over or this process's parent has ended."""
    parent, context = os.getppid(), multiprocessing.get_context("fork")
    workers = [context.Process(target=_burn, args=(os.getpid(), seconds)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    print(f"load of {processes} processes", flush=True)
    while any(worker.is_alive() for worker in workers) and os.getppid() == parent:
        time.sleep(_LOOK)
    for worker in workers:
        worker.kill()
        worker.join()


def _burn(parent: int, seconds: float) -> None:
    """Keep one processor busy; a signal that ends the parent ends this process at the next look."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end = time.monotonic() + seconds
    while time.monotonic() < end and os.getppid() == parent:
        look = time.monotonic() + _LOOK
        while time.monotonic() < look:
            pass


if __name__ == "__main__":
    given = parse(sys.argv[1:])
    with contextlib.suppress(KeyboardInterrupt):
        run(given.processes, given.seconds)
