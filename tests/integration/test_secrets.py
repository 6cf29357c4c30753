"""What a run leaves behind, searched for its secrets: printed, logged, raised, stored, listed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqtools.testing import FakeCluster
from tests.support.cluster_scene import PROGRAM
from tests.support.patience import PROGRAM_PATIENCE

pytestmark = pytest.mark.process

SECRETS = ("k3y-n0body-sees", "t0ken-n0body-sees", "passw0rd-n0body-sees")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        yield cluster


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The home of the runs: all that they store is under it."""
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def environment(left: Path, cluster: FakeCluster) -> dict[str, str]:
    home = {"HOME": str(left), "XDG_STATE_HOME": f"{left}/state", "XDG_CONFIG_HOME": f"{left}/config"}
    own = {"NAMESRV_ADDR": cluster.name_server, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    return os.environ | home | own


def run(environment: dict[str, str], *command: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a program in the home of the runs."""
    return subprocess.run(
        command,
        env=environment,
        cwd=environment["HOME"],
        capture_output=True,
        timeout=PROGRAM_PATIENCE,
        check=False,
    )


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text("\n".join(SECRETS))
    return file


def found_in(*texts: bytes) -> list[str]:
    return [secret for secret in SECRETS if any(secret.encode() in text for text in texts)]


def files_with_secrets(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file() and found_in(path.read_bytes())]


def test_a_run_with_every_role_and_many_failures_leaves_no_secret(left, environment, cluster, key_file):
    program = [sys.executable, "-m", "tests.integration.secretive_run", cluster.name_server, str(key_file)]

    ended = run(environment, *program)

    assert ended.stdout.splitlines()[-1:] == [b"done"], ended.stderr.decode()
    assert found_in(ended.stdout, ended.stderr) == []
    assert b"'secret_key': '***'" in ended.stdout
    assert b"DEBUG:user:config" in ended.stderr
    assert files_with_secrets(left) == []
    assert list(left.rglob("offsets.json")), "nothing was stored: the search proves nothing"


def test_commands_show_no_secret_on_their_command_lines_nor_in_what_they_write(left, environment, key_file):
    file = left.parent / "secret"
    file.write_text(SECRETS[0])
    keys = {"RMQTOOLS_ACCESS_KEY": "alice", "RMQTOOLS_SECRET_KEY_FILE": str(file)}
    follow = [*PROGRAM, "consume", "t", "--follow"]
    with subprocess.Popen(
        follow, env=environment | keys, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reader:
        listed = subprocess.run(["ps", "-axww", "-o", "args"], capture_output=True, check=True).stdout
        reader.terminate()
        shown = b"".join(reader.communicate(timeout=PROGRAM_PATIENCE))
    wrong = ("--set", "request_timeout=0.1", "-n", "127.0.0.1:1")
    refused = run(environment | keys, *PROGRAM, "topic", "list", *wrong)

    assert b"rmqtools.cli" in listed
    assert found_in(listed, shown, refused.stdout, refused.stderr) == []
    assert b"cannot connect to 127.0.0.1:1" in refused.stderr
    assert files_with_secrets(left) == []


def test_a_secret_on_a_command_line_is_refused_without_showing_it(environment):
    refused = run(environment, *PROGRAM, "topic", "list", "--set", f"secretKey={SECRETS[0]}")

    assert refused.returncode != 0
    assert b"every user of this machine can read a command line" in refused.stderr
    assert found_in(refused.stdout, refused.stderr) == []


@pytest.mark.spark
@pytest.mark.slow
def test_spark_leaves_no_secret_in_plans_pages_logs_and_events(left, environment, cluster, key_file):
    events = left / "events"
    events.mkdir()
    cluster.create_topic("t", queues=1)
    program = [sys.executable, "-m", "tests.integration.secretive_spark", cluster.name_server, str(key_file)]

    ended = run(environment, *program, str(events))

    assert ended.stdout.splitlines()[-1:] == [b"done"], ended.stderr[-3000:].decode()
    assert found_in(ended.stdout, ended.stderr) == []
    assert b"rocketmq" in ended.stdout
    assert any(events.rglob("*")), "no event was logged: the search proves nothing"
    assert files_with_secrets(left) == []
