"""The staging kit on a real cluster: four processes, one of them pinned."""

import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from rmqtools.cluster import LocalCluster
from tests.support.patience import PROGRAM_PATIENCE

pytestmark = pytest.mark.broker

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow  # test_pinned_group.py does the same without the kit
def test_only_the_pinned_machine_gets_messages_until_it_is_unpinned(local_cluster: LocalCluster) -> None:
    name = uuid.uuid4().hex[:8]
    command = [sys.executable, "-m", "examples.staging_pinned.staging", "--group", f"staging-{name}"]
    options = ["--topic", f"test-{name}", "--name-server", local_cluster.name_server]

    ended = subprocess.run(
        [*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=PROGRAM_PATIENCE, check=False
    )

    assert ended.returncode == 0, ended.stderr
    phases = dict(line.split(": ", 1) for line in ended.stdout.splitlines() if " got " in line)
    got = {name: [int(count) for count in re.findall(r"got (\d+)", text)] for name, text in phases.items()}
    assert got["pinned"] == [0, 40, 0, 0]
    assert [sum(got["shared"]), sum(got["shared again"])] == [40, 40]
    assert all(got["shared"] + got["shared again"])
    assert f"$ rmqtools pin set --group staging-{name} --ip 10.0.0.2" in ended.stdout
