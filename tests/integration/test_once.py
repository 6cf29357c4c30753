"""Once-only consuming on a real broker: members are killed between the effect and its acknowledgement."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from rmqtools import Message
from rmqtools.once import SqlStore
from tests.support.cluster_scene import wait_until
from tests.support.listening import new_group, numbers
from tests.support.once_member import EFFECTS, open_database
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.broker

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def database(tmp_path):
    engine = open_database(tmp_path / "effects.db")
    EFFECTS.create(engine)
    SqlStore(engine, group="any").create_table()
    yield engine
    engine.dispose()


@contextmanager
def member(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.support.once_member", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def effects(database: sa.Engine) -> list[bytes]:
    with database.connect() as connection:
        return sorted(connection.scalars(sa.select(EFFECTS.c.body)))


def number_dropped(line: str) -> int:
    """More than expected where a send was stored twice, or a message was delivered twice."""
    word, _, number = line.partition(" ")
    return int(number) if word == "dropped" else 0


@pytest.mark.slow  # it kills members
def test_a_member_killed_between_effect_and_acknowledgement_has_each_effect_once(
    local_cluster, producer, make_topic, database, tmp_path
):
    topic, group, bodies = make_topic(queues=1), new_group(), numbers(20)
    arguments = (local_cluster.name_server, group, topic, str(tmp_path / "effects.db"))
    for body in bodies:
        producer.send(Message(topic, body))

    with member(*arguments, "--dies", "before-commit") as killed:
        assert killed.wait(PATIENCE) == -9
    assert effects(database) == []
    with member(*arguments, "--dies", "before-acknowledgement") as killed:
        assert killed.wait(PATIENCE) == -9
    done = effects(database)
    assert done
    with member(*arguments) as last:
        wait_until(lambda: len(effects(database)) >= len(bodies))
        assert any(number_dropped(line) >= len(done) for line in last.stdout or ())  # reads until then

    assert effects(database) == sorted(bodies)
