"""The lock file and its lines."""

import re

import pytest

from rmqtools.cluster import ClusterError
from rmqtools.cluster.lock import LockedJar, locked_jars, locked_versions
from rmqtools.errors import ConfigError

SUM = "a" * 64
PLAIN = LockedJar("org.example", "thing", None, "1.0", SUM)
NATIVE = LockedJar("org.example", "thing", "linux-x86_64", "1.0", SUM)


@pytest.mark.parametrize(
    ("line", "jar"),
    [(f"org.example:thing:1.0 {SUM}", PLAIN), (f"org.example:thing:linux-x86_64:1.0 {SUM}", NATIVE)],
)
def test_a_line_is_parsed_and_formatted_back(line: str, jar: LockedJar) -> None:
    assert LockedJar.parse(line) == jar
    assert jar.format() == line


@pytest.mark.parametrize(
    "line", ["", "org.example:thing:1.0", f"thing {SUM}", f"a:b:c:d:e {SUM}", f"a:b:c {SUM} x"]
)
def test_another_form_is_refused(line: str) -> None:
    with pytest.raises(ClusterError, match=r"group:artifact\[:classifier\]:version sha256"):
        LockedJar.parse(line)


def test_a_jar_knows_its_names() -> None:
    assert PLAIN.file_name == "thing-1.0.jar"
    assert NATIVE.file_name == "thing-1.0-linux-x86_64.jar"
    assert NATIVE.repository_path.as_posix() == "org/example/thing/1.0/thing-1.0-linux-x86_64.jar"


def test_the_versions_that_are_run_are_locked() -> None:
    assert locked_versions() == ["4.9.7", "5.1.4", "5.3.3", "5.5.0"]
    assert locked_versions(proxy=True) == ["5.5.0"]


@pytest.mark.parametrize("version", locked_versions())
def test_a_lock_holds_the_four_roots_of_its_version(version: str) -> None:
    jars = locked_jars(version)
    versions = {jar.artifact: jar.version for jar in jars if jar.group == "org.apache.rocketmq"}

    roots = ["rocketmq-namesrv", "rocketmq-broker", "rocketmq-client", "rocketmq-tools"]
    assert [versions[root] for root in roots] == [version] * 4


@pytest.mark.parametrize(("version", "count"), [*zip(locked_versions(), [40, 90, 128, 131], strict=True)])
def test_every_locked_file_has_a_name_of_its_own_and_a_sum(version: str, count: int) -> None:
    jars = locked_jars(version)

    assert len({jar.file_name for jar in jars}) == len(jars) == count
    assert [jar for jar in jars if not re.fullmatch(r"[0-9a-f]{64}", jar.sha256)] == []


def test_a_proxy_takes_its_jars_and_those_of_the_servers_each_once() -> None:
    jars = locked_jars("5.5.0", proxy=True)

    assert len({jar.file_name for jar in jars}) == len(jars) == 141
    assert "rocketmq-proxy-5.5.0.jar" in {jar.file_name for jar in jars}


@pytest.mark.parametrize(
    ("version", "proxy", "known"), [("5.3.2", False, "4.9.7, 5.1.4"), ("5.1.4", True, "want one of 5.5.0")]
)
def test_a_version_without_lock_is_refused_with_those_that_have_one(version, proxy, known) -> None:
    with pytest.raises(ConfigError, match=rf"'{version}'.*{known}"):
        locked_jars(version, proxy=proxy)


@pytest.mark.parametrize("version", locked_versions())
def test_no_native_library_of_another_system_is_locked(version: str) -> None:
    assert {jar.classifier for jar in locked_jars(version)} <= {None, "linux-x86_64"}
