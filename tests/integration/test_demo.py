"""``make demo`` as a user runs it: it ends equal, it sees one altered byte, it leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rmqtools.cluster.jars import cache_root
from tests.support.cluster_scene import leftovers, wait_until
from tests.support.patience import PROGRAM_PATIENCE

pytestmark = [pytest.mark.broker, pytest.mark.spark]

ROOT = Path(__file__).resolve().parents[2]
QUEUES = [f"broker-{name} │     {queue} │" for name in "ab" for queue in range(4)]


class Demo:
    """The demo as a child process: temporary files in ``temporary``, an empty home, no PYTHONPATH."""

    def __init__(self, directory: Path) -> None:
        self.temporary, home = directory / "temporary", directory / "home"
        self.temporary.mkdir()
        home.mkdir()
        self.environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        self.environment |= {"HOME": str(home), "TMPDIR": str(self.temporary)}
        self.environment["RMQTOOLS_CACHE_DIR"] = str(cache_root())  # downloads are not what is tested here

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "examples.demo", *arguments],
            cwd=ROOT,
            env=self.environment,
            text=True,
            capture_output=True,
            timeout=PROGRAM_PATIENCE,
        )

    def nothing_is_left(self) -> bool:
        return not leftovers(self.temporary) and not list(self.temporary.iterdir())


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    return Demo(tmp_path)


def test_the_demo_ends_equal_shows_every_queue_and_leaves_nothing(demo: Demo) -> None:
    ended = demo.run()

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1].startswith(
        "equal: 12,000 messages, 36,134,353 bytes in bodies, 8 queues"
    )
    assert [queue for queue in QUEUES if queue not in ended.stdout] == []
    wait_until(demo.nothing_is_left)  # Spark's JVM ends just after the Python process


@pytest.mark.slow
def test_one_altered_byte_is_seen_and_named(demo: Demo) -> None:
    ended = demo.run("--flip-byte", "4500")

    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "not equal: row with seq 4500: body differs at byte 100000: written as" in ended.stderr
    assert "equal:" not in ended.stdout
    wait_until(demo.nothing_is_left)
