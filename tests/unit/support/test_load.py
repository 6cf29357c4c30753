"""The load beside a run: what it takes, and that it leaves no process. Nothing here is busy."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.support import load

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*fork:DeprecationWarning"
)  # the threads of this process do nothing


@pytest.fixture
def kept_signals() -> Iterator[None]:
    """Give this process its handlers back: without them Ctrl-C, or a later test's signal, would kill it."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def wait_for_the_end(parent: int, seconds: float) -> None:
    """Work that waits instead."""
    load.end_on_signals()
    time.sleep(seconds)


def stop_the_parent(parent: int, seconds: float) -> None:
    os.kill(parent, signal.SIGTERM)
    wait_for_the_end(parent, seconds)


def test_the_number_is_needed_and_the_time_has_a_default():
    parsed = load.parse(["8"])

    assert (parsed.processes, parsed.seconds) == (8, 3600.0)
    assert load.parse(["8", "--seconds", "1.5"]).seconds == 1.5


@pytest.mark.parametrize(
    "arguments", [[], ["0"], ["-1"], ["1001"], ["x"], ["1", "--seconds", "0"], ["1", "--seconds", "nan"]]
)
def test_what_is_out_of_bounds_is_refused(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        load.parse(arguments)

    assert "usage: python -m tests.support.load" in capsys.readouterr().err


@pytest.mark.process
def test_it_ends_with_its_processes():
    load.run(2, 0.01, work=wait_for_the_end)

    assert multiprocessing.active_children() == []


@pytest.mark.process
def test_sigterm_ends_it_and_all_its_processes():
    before = signal.getsignal(signal.SIGTERM)

    with pytest.raises(SystemExit, match=str(128 + signal.SIGTERM)):
        load.run(3, 600, work=stop_the_parent)

    assert multiprocessing.active_children() == []
    assert signal.getsignal(signal.SIGTERM) == before


def test_without_its_parent_a_process_ends_at_once(kept_signals):
    load.burn(os.getpid(), 600)  # the parent of this process is another one
