"""The arguments of the two commands that fetch jars."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rmqtools.cluster import fetch
from rmqtools.cluster.lock import LockedJar
from rmqtools.cluster.processes import find_processes
from tests.support.cluster_scene import JAVA_17, wait_until, write_program

PLAIN = LockedJar("org.example", "thing", None, "1.0", "")
NATIVE = LockedJar("org.example", "thing", "linux-x86_64", "1.0", "")
M2 = "{http://maven.apache.org/POM/4.0.0}"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_program(tmp_path / "programs", "java", JAVA_17)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("IVY_SETTINGS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def way(tmp_path: Path) -> fetch.Way:
    work = tmp_path / "work"
    work.mkdir()
    return fetch.choose_way([PLAIN, NATIVE], work, tmp_path / "cache")


def test_maven_is_forbidden_to_follow_dependencies(tmp_path: Path) -> None:
    write_program(tmp_path / "programs", "mvn", "")

    assert way(tmp_path).name == "Maven"
    dependencies = ElementTree.parse(tmp_path / "work" / "pom.xml").iter(f"{M2}dependency")
    assert [
        (d.findtext(f"{M2}classifier"), d.findtext(f"{M2}exclusions/{M2}exclusion/{M2}artifactId"))
        for d in dependencies
    ] == [(None, "*"), ("linux-x86_64", "*")]


def test_ivy_is_forbidden_to_follow_dependencies(tmp_path: Path) -> None:
    assert way(tmp_path).name == "Ivy"
    dependencies: Any = ElementTree.parse(tmp_path / "work" / "ivy.xml").iter("dependency")
    assert [
        (d.get("transitive"), d.find("artifact").get("{http://ant.apache.org/ivy/maven}classifier"))
        for d in dependencies
    ] == [("false", None), ("false", "linux-x86_64")]


def test_ivy_has_a_cache_and_a_home_of_its_own(tmp_path: Path) -> None:
    command = list(way(tmp_path).command)

    assert command[command.index("-cache") + 1].startswith(str(tmp_path / "cache"))
    assert f"-Duser.home={tmp_path / 'cache' / 'ivy'}" in command
    assert "-settings" not in command


def test_the_users_ivy_settings_are_passed_on_and_keep_the_users_home(tmp_path: Path) -> None:
    settings = tmp_path / "home" / ".ivy2" / "ivysettings.xml"
    settings.parent.mkdir(parents=True)
    settings.write_text("<ivysettings/>")

    command = list(way(tmp_path).command)

    assert command[command.index("-settings") + 1] == str(settings)
    assert [argument for argument in command if "user.home" in argument] == []


def test_settings_named_by_the_environment_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IVY_SETTINGS", "/company/ivysettings.xml")

    command = list(way(tmp_path).command)

    assert command[command.index("-settings") + 1] == "/company/ivysettings.xml"


@pytest.mark.process
@pytest.mark.parametrize("name", ["Maven", "Ivy"])
def test_the_watchdog_finds_what_fetches(tmp_path: Path, name: str) -> None:
    if name == "Maven":
        write_program(tmp_path / "programs", "mvn", "")
    chosen = way(tmp_path)
    assert chosen.name == name

    with subprocess.Popen(
        [sys.executable, "-c", "import signal; signal.pause()", *chosen.command[1:]]
    ) as one:
        wait_until(lambda: find_processes(tmp_path / "work") == [one.pid])
        one.kill()


def test_no_repository_address_is_written_in_the_code() -> None:
    sources = Path(fetch.__file__).parent.iterdir()
    addresses = [
        word for path in sources if path.is_file() for word in path.read_text().split() if "://" in word
    ]

    names = ("http://maven.apache.org/POM/4.0.0", "http://ant.apache.org/ivy/maven")  # of XML languages
    assert [word for word in addresses if not any(name in word for name in names)] == []
