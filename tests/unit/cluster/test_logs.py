"""Logs of servers, as files."""

from pathlib import Path
from typing import Any

import pytest

from rmqtools.cluster import ClusterError
from rmqtools.cluster.logs import find_log, follow, last_lines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    home = tmp_path / "broker-a"
    home.mkdir()
    path = home / "server.log"
    path.write_text("one\ntwo\nthree\n")
    return path


def test_a_log_is_found_by_its_server_and_read_from_its_end(tmp_path: Path, log: Path) -> None:
    assert find_log(tmp_path, "broker-a") == log
    assert last_lines(log, 2) == ["two", "three"]
    assert last_lines(log, 0) == []


def test_an_unknown_server_is_an_error_that_names_one_spelled_alike(tmp_path: Path, log: Path) -> None:
    with pytest.raises(ClusterError, match=r"unknown server 'broker-aa' \(did you mean 'broker-a'\?\)"):
        find_log(tmp_path, "broker-aa")
    with pytest.raises(ClusterError, match="no server has run in"):
        find_log(tmp_path / "empty", "broker-a")


def test_lines_are_followed_whole_and_into_a_log_that_was_begun_anew(log: Path) -> None:
    steps = iter(
        [
            lambda: append(log, "fo"),
            lambda: append(log, "ur\n"),
            lambda: (log.rename(log.with_name("server.1.log")), log.write_text("five\n")),
        ]
    )

    lines: Any = follow(log, 0, lambda: next(steps)())  # a generator

    assert [next(lines), next(lines)] == ["four", "five"]
    lines.close()


def test_no_line_is_missing_between_the_last_lines_and_those_that_follow(log: Path) -> None:
    append(log, "fo")
    lines: Any = follow(log, 3, lambda: append(log, "six\n"))

    first = next(lines)
    append(log, "ur\nfive\n")

    assert [first, *(next(lines) for _ in range(4))] == ["two", "three", "four", "five", "six"]
    lines.close()


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)
