"""What a run leaves behind, searched for its secrets: printed, logged, raised, stored, listed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqtools.testing import FakeCluster
from tests.support.patience import PROGRAM_PATIENCE

pytestmark = pytest.mark.process

SECRETS = ("k3y-n0body-sees", "t0ken-n0body-sees", "passw0rd-n0body-sees")
COMMAND = [sys.executable, "-c", "from rmqtools.cli import main; main()"]
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
    own = {"HOME": str(left), "XDG_STATE_HOME": f"{left}/state", "XDG_CONFIG_HOME": f"{left}/config"}
    return (
        os.environ
        | own
        | {"NAMESRV_ADDR": cluster.name_server, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    )


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text("\n".join(SECRETS))
    return file


def found_in(text: bytes | str) -> list[str]:
    shown = text.decode(errors="replace") if isinstance(text, bytes) else text
    return [secret for secret in SECRETS if secret in shown]


def files_with_secrets(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file() and found_in(path.read_bytes())]


def test_a_run_with_every_role_and_many_failures_leaves_no_secret(left, environment, cluster, key_file):
    program = [sys.executable, "-m", "tests.integration.secretive_run", cluster.name_server, str(key_file)]

    run = subprocess.run(
        program,
        env=environment,
        cwd=left,
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE,
        check=False,
    )

    assert run.stdout.splitlines()[-1:] == ["done"], run.stderr
    assert found_in(run.stdout) == found_in(run.stderr) == []
    assert "'secret_key': '***'" in run.stdout
    assert "DEBUG:user:config" in run.stderr
    assert files_with_secrets(left) == []
    assert list(left.rglob("offsets.json")), "nothing was stored: the search proves nothing"


def test_commands_show_no_secret_on_their_command_lines_nor_in_what_they_write(left, environment, key_file):
    file = left.parent / "secret"
    file.write_text(SECRETS[0])
    keys = {"RMQTOOLS_ACCESS_KEY": "alice", "RMQTOOLS_SECRET_KEY_FILE": str(file)}
    follow = [*COMMAND, "consume", "t", "--follow"]
    with subprocess.Popen(
        follow, env=environment | keys, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reader:
        listed = subprocess.run(["ps", "-axww", "-o", "args"], capture_output=True, check=True).stdout
        reader.terminate()
        shown = b"".join(reader.communicate(timeout=PROGRAM_PATIENCE))
    refused = subprocess.run(
        [*COMMAND, "topic", "list", "--set", "request_timeout=0.1", "-n", "127.0.0.1:1"],
        env=environment | keys,
        capture_output=True,
        timeout=PROGRAM_PATIENCE,
        check=False,
    )

    assert b"rmqtools.cli" in listed
    assert found_in(listed) == found_in(shown) == found_in(refused.stdout + refused.stderr) == []
    assert b"cannot connect to 127.0.0.1:1" in refused.stderr
    assert files_with_secrets(left) == []


def test_a_secret_on_a_command_line_is_refused_without_showing_it(left, environment):
    refused = subprocess.run(
        [*COMMAND, "topic", "list", "--set", f"secretKey={SECRETS[0]}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE,
        check=False,
    )

    assert refused.returncode != 0
    assert "every user of this machine can read a command line" in refused.stderr
    assert found_in(refused.stdout + refused.stderr) == []


@pytest.mark.spark
@pytest.mark.slow
def test_spark_leaves_no_secret_in_plans_pages_logs_and_events(left, environment, cluster, key_file):
    events = left / "events"
    events.mkdir()
    cluster.create_topic("t", queues=1)
    program = [sys.executable, "-m", "tests.integration.secretive_spark", cluster.name_server, str(key_file)]

    run = subprocess.run(
        [*program, str(events)],
        env=environment,
        cwd=left,
        capture_output=True,
        timeout=PROGRAM_PATIENCE,
        check=False,
    )

    assert run.stdout.splitlines()[-1:] == [b"done"], run.stderr[-3000:].decode()
    assert found_in(run.stdout) == found_in(run.stderr) == []
    assert b"rocketmq" in run.stdout
    assert any(events.rglob("*")), "no event was logged: the search proves nothing"
    assert files_with_secrets(left) == []
