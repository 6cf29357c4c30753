"""Members of the code before this release and of this one in one group, and files of the old one."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Self

import pytest

from rmqtools import Message
from rmqtools.group import FindingKind, check_group
from tests.support.cluster_scene import wait_until
from tests.support.java_consumer import JavaConsumer
from tests.support.patience import PROGRAM_PATIENCE
from tests.versions.old_release import ROOT, extract

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

PROGRAM = ROOT / "tests" / "versions" / "version_member.py"
QUEUES = 4


@pytest.fixture(scope="module")
def old(tmp_path_factory) -> Path:
    return extract(tmp_path_factory.mktemp("old"))


class Member(JavaConsumer):
    """A member in a process of its own, by the packages in a folder; it leaves when its input ends."""

    def __init__(self, packages: Path, *arguments: str) -> None:
        self._packages = packages
        self._set_up(arguments)

    def __enter__(self) -> Self:
        self.start()
        assert Path(self.client_id).is_relative_to(self._packages), (
            "it runs by the packages of another folder"
        )
        return self

    def stop(self) -> None:
        """Let it leave the group, and wait until it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(60) == 0
        self.kill()

    def _command(self, home: str) -> list[str]:
        return [sys.executable, str(PROGRAM), *self._arguments]

    def _environment(self, home: str) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self._packages)}

    def _note(self, row: dict[str, Any]) -> None:
        if "started" in row:
            self.client_id = row["started"]
        else:
            self._messages.append(row)


def bodies(*members: Member) -> list[str]:
    return sorted({row["body"] for member in members for row in member.messages})


def violations(*members: Member) -> list[str]:
    """First deliveries that came after a later message of their queue."""
    found: list[str] = []
    last: defaultdict[str, int] = defaultdict(lambda: -1)
    seen: set[tuple[str, int]] = set()
    for row in sorted((row for one in members for row in one.messages), key=lambda row: row["began"]):
        place = row["queue"], row["offset"]
        if place not in seen and row["offset"] < last[row["queue"]]:
            found.append(f"{place} after {last[row['queue']]}")
        seen.add(place)
        last[row["queue"]] = max(last[row["queue"]], row["offset"])
    return found


@pytest.mark.parametrize("kind", ["push", "orderly", "pull"])
def test_old_and_new_members_own_each_queue_once_through_joins_and_leaves(
    kind, old, local_cluster, make_topic, admin, producer
):
    topic = make_topic(queues=QUEUES)
    group, sent = f"mixed-{topic}", 0
    arguments = (kind, local_cluster.name_server, group, topic)

    def send(count: int) -> None:
        nonlocal sent
        for number in range(sent, sent + count):
            producer.send(Message(topic, f"{number:04}".encode()))
        sent += count

    def settled(members: int) -> bool:
        view = admin.fetch_group(group)
        kinds = {found.kind for found in check_group(view)}
        return len(view.members) == members and kinds <= {FindingKind.VERSIONS_DIFFER}

    with Member(old, *arguments) as first, Member(ROOT, *arguments) as second:
        wait_until(lambda: settled(2), seconds=90)
        send(100)
        with Member(old, *arguments) as third:
            wait_until(lambda: settled(3), seconds=90)
            send(100)
            with Member(ROOT, *arguments) as fourth:
                wait_until(lambda: settled(4), seconds=90)
                send(100)
                first.stop()
                wait_until(lambda: settled(3), seconds=90)
                send(100)
                second.stop()
                wait_until(lambda: settled(2), seconds=90)
                send(100)
                every = (first, second, third, fourth)
                wait_until(lambda: len(bodies(*every)) == sent, seconds=90)

    assert bodies(*every) == [f"{number:04}" for number in range(sent)]
    assert kind == "push" or violations(*every) == []


@pytest.mark.parametrize("kind", ["broadcasting", "once"])
def test_files_that_the_old_code_has_written_are_read(
    kind, old, local_cluster, make_topic, admin, producer, tmp_path
):
    topic = make_topic(queues=1)
    file = str(tmp_path / "offsets.json" if kind == "broadcasting" else tmp_path / "keys.db")
    arguments = (local_cluster.name_server, f"files-{topic}", topic, file)
    for number in range(10):
        producer.send(Message(topic, b"old %d" % number))
    with Member(old, kind, *arguments) as before:
        wait_until(lambda: len(before.messages) == 10, seconds=60)
    if kind == "once":  # everything comes again: the keys decide
        admin.reset_offsets(f"files-{topic}", topic, 0)
    producer.send(Message(topic, b"new"))
    with Member(ROOT, kind, *arguments) as after:
        wait_until(lambda: "new" in bodies(after), seconds=60)

    assert bodies(after) == ["new"]


def test_a_checkpoint_that_the_old_code_has_written_is_read_on(
    old, local_cluster, make_topic, producer, spark, tmp_path
):
    topic = make_topic(queues=2)
    options = json.dumps(
        {"nameServer": local_cluster.name_server, "topic": topic, "startingOffsets": "earliest"}
    )
    driver = [sys.executable, str(ROOT / "tests" / "spark" / "stream_driver.py"), str(tmp_path), options]
    for packages, portion in ((old, b"old"), (ROOT, b"new")):
        for number in range(50):
            producer.send(Message(topic, b"%s %d" % (portion, number)))
        env = {**os.environ, "PYTHONPATH": str(packages)}
        ended = subprocess.run(
            driver, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=PROGRAM_PATIENCE
        )
        assert ended.returncode == 0, ended.stderr

    read = sorted(bytes(row.body) for row in spark.read.parquet(str(tmp_path / "rows")).collect())
    assert read == sorted(
        b"%s %d" % (portion, number) for portion in (b"old", b"new") for number in range(50)
    )
