"""The Java that runs the servers, and the error if there is none."""

from pathlib import Path

import pytest

from rmqtools.cluster import ClusterError
from rmqtools.cluster.java import find_java
from tests.support.cluster_scene import JAVA_17, write_program


@pytest.fixture(autouse=True)
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))


def say(line: str, code: int = 0) -> str:
    return f"echo '{line}' >&2; exit {code}"


def test_java_home_wins_over_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_program(tmp_path / "programs", "java", JAVA_17)
    wanted = write_program(tmp_path / "home" / "bin", "java", JAVA_17)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))

    assert find_java() == str(wanted)


def test_a_java_home_without_java_gives_way_to_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = write_program(tmp_path / "programs", "java", JAVA_17)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))

    assert find_java() == str(wanted)


@pytest.mark.parametrize(
    "line",
    [
        'openjdk version "17.0.15" 2025-04-15',
        'openjdk version "21" 2023-09-19',
        'java version "25-ea" 2025-09-16',
        'Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.1" 2021-10-19',
    ],
)
def test_java_17_and_newer_are_taken(tmp_path: Path, line: str) -> None:
    java = write_program(tmp_path / "programs", "java", say(line))

    assert find_java() == str(java)


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ('openjdk version "1.8.0_392"', 8),
        ('openjdk version "11.0.22" 2024-01-16', 11),
        ('java version "16"', 16),
    ],
)
def test_an_older_java_is_refused_with_its_version_and_a_remedy(
    tmp_path: Path, line: str, version: int
) -> None:
    write_program(tmp_path / "programs", "java", say(line))

    with pytest.raises(ClusterError, match=rf"java is Java {version}, Java 17 or newer .*set JAVA_HOME"):
        find_java()


def test_no_java_is_an_error_with_a_remedy() -> None:
    with pytest.raises(ClusterError, match=r"no Java found .*default-jre-headless.*JAVA_HOME"):
        find_java()


@pytest.mark.parametrize("script", [say("a library is missing", 127), "exit 0"])
def test_a_java_that_does_not_tell_its_version_is_refused(tmp_path: Path, script: str) -> None:
    write_program(tmp_path / "programs", "java", script)

    with pytest.raises(ClusterError, match=r"java -version ended with \d+ and said"):
        find_java()
