"""A cluster in this process, and commands that speak to it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rmqtools import Admin, ClientConfig
from rmqtools.cli import app
from rmqtools.policy import group_check
from rmqtools.testing import FakeCluster

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _soon_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report findings that a rebalance can cause after 0.05 seconds; users see them after five."""
    monkeypatch.setattr(group_check, "SETTLE_SECONDS", 0.05)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(brokers=("broker-a", "broker-b"), auto_create_topics=False) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: FakeCluster) -> Iterator[Admin]:
    with Admin(ClientConfig(name_server=cluster.name_server, request_timeout=5.0)) as admin:
        yield admin


@pytest.fixture
def run(cluster: FakeCluster, tmp_path: Path) -> Run:
    """``run(arguments ..., stdin=b"")``: the result of a command; its error is raised as main() gets it."""

    def run(*arguments: object, stdin: bytes | str | None = None) -> Result:
        runner = CliRunner(
            env={
                "NAMESRV_ADDR": cluster.name_server,
                "XDG_STATE_HOME": str(tmp_path / "state"),
                "RMQTOOLS_UTC": "1",
            }
        )
        return runner.invoke(app, [*map(str, arguments)], input=stdin, catch_exceptions=False)

    return run
