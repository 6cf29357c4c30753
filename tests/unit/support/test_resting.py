"""Late timers of servers: of what is started meanwhile, and of nothing else."""

import subprocess
from pathlib import Path

import pytest

from tests.support.resting import late_timers

pytestmark = pytest.mark.process

SLACK = Path("/proc/self/timerslack_ns")


def test_only_what_is_started_meanwhile_has_late_timers():
    before = SLACK.read_text()
    with late_timers():
        child = subprocess.run(["cat", SLACK], capture_output=True, text=True, check=True).stdout

    assert (child, SLACK.read_text()) == ("20000000\n", before)
