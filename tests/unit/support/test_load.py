"""The load beside a run: what it takes, and that it leaves no process."""

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import load
from tests.support.cluster_scene import wait_until


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
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the threads of this process do nothing
def test_it_ends_with_its_processes():
    load.run(2, 0.01)

    assert multiprocessing.active_children() == []


@pytest.mark.process
def test_sigterm_ends_it_and_all_its_processes():
    program = [sys.executable, "-m", "tests.support.load", "2", "--seconds", "600"]
    with subprocess.Popen(program, cwd=Path(load.__file__).parents[2], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        parent.terminate()

    assert len(children) == 2
    wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
