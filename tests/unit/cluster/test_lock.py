"""The lock file and its lines."""

import re

import pytest

from rmqtools.cluster import ClusterError
from rmqtools.cluster.lock import LockedJar, locked_jars

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


def test_the_lock_holds_the_four_roots_of_one_version() -> None:
    versions = {jar.artifact: jar.version for jar in locked_jars() if jar.group == "org.apache.rocketmq"}

    roots = ["rocketmq-namesrv", "rocketmq-broker", "rocketmq-client", "rocketmq-tools"]
    assert [versions[root] for root in roots] == ["5.5.0"] * 4


def test_every_locked_file_has_a_name_of_its_own_and_a_sum() -> None:
    jars = locked_jars()

    assert len({jar.file_name for jar in jars}) == len(jars) == 131
    assert [jar for jar in jars if not re.fullmatch(r"[0-9a-f]{64}", jar.sha256)] == []


def test_no_native_library_of_another_system_is_locked() -> None:
    assert {jar.classifier for jar in locked_jars()} == {None, "linux-x86_64"}
