"""The command line ``rmqtools cluster``: exit codes and texts of what needs no server."""

import re
import socket
from pathlib import Path

import pytest

from tests.support.cluster_scene import JAVA_17, Scene, leftovers
from tests.support.command_line import rmqtools_program


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    scene.only_programs({"java": JAVA_17})
    return scene


def test_status_without_a_cluster_says_so_and_ends_with_3(scene: Scene) -> None:
    shown = scene.run("status")

    assert (shown.returncode, shown.stdout) == (3, f"no cluster in {scene.directory}\n")


def test_down_without_a_cluster_is_no_error(scene: Scene) -> None:
    stopped = scene.run("down")

    assert (stopped.returncode, stopped.stdout) == (0, f"stopped 0 processes of {scene.directory}\n")


@pytest.mark.parametrize(
    "arguments", [("up", "--brokers", "0"), ("up", "--brokers", "27"), ("up", "--port", "0")]
)
def test_wrong_usage_ends_with_2(scene: Scene, arguments: tuple[str, ...]) -> None:
    assert scene.run(*arguments).returncode == 2


def test_a_taken_port_is_one_line_on_standard_error(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        refused = scene.run("up", "--port", str(port))

    assert refused.returncode == 1
    assert re.fullmatch(rf"error: port {port} for the name server is taken .*\n", refused.stderr.lstrip("\n"))
    assert leftovers(scene.directory) == []


def test_the_default_directory_is_the_users_state(scene: Scene) -> None:
    scene.set(XDG_STATE_HOME=str(scene.root / "state"))

    shown = rmqtools_program("cluster", "status", **scene.environment)

    assert shown.stdout == f"no cluster in {scene.root}/state/rmqtools/cluster\n"
