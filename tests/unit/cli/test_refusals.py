"""Commands that are refused: the rows of ``refusals.md``, each on the cluster in this process."""

import shlex
from pathlib import Path

import pytest

from rmqtools import MessageQueue
from rmqtools.cli.settings_file import fetch_settings
from rmqtools.errors import RocketMQError
from rmqtools.testing import FakeCluster
from tests.support.tables import lacking, table_rows
from tests.unit.cli.top.scene import report

A, B = (MessageQueue("orders", broker, 0) for broker in ("broker-a", "broker-b"))


@pytest.fixture(scope="module")
def cluster():
    """A topic with three messages; a group without members that has consumed one, and one of two members."""
    with FakeCluster(brokers=("broker-a", "broker-b"), auto_create_topics=False) as cluster:
        for topic in ("orders", "%DLQ%billing"):
            cluster.create_topic(topic, queues=1)
        cluster.store("orders", b"1", b"2", b"3", queue=A)
        for group in ("billing", "watched"):
            cluster.create_group(group)
        cluster.commit("billing", A, 1)
        cluster.commit("billing", B, 0)
        for client_id in ("10.0.0.1@one", "10.0.0.2@two"):
            cluster.add_member("watched", client_id, report("orders", ("broker-a", 0), strategy="AVG"))
        yield cluster


@pytest.fixture
def state(admin, cluster, tmp_path):
    """Make the file of the folder; return a function that looks at it and at what commands change."""
    (tmp_path / "file").write_text("precious: {a: }: b")

    def state():
        pins = {group: admin.fetch_pins(group) for group in admin.fetch_pin_groups()}
        offsets = [cluster.committed(group, A) for group in ("billing", "watched")]
        files = [(path.name, path.read_text()) for path in tmp_path.iterdir() if path.is_file()]
        return fetch_settings(admin), pins, offsets, files, len(cluster.messages("orders"))

    return state


ROWS = table_rows(Path(__file__).with_name("refusals.md"))


@pytest.mark.parametrize(("command", "says"), [pytest.param(*row, id=row[0]) for row in ROWS])
def test_a_command_that_is_refused_says_why_and_changes_nothing(run, state, tmp_path, command, says):
    before = state()

    with pytest.raises(RocketMQError) as refusal:
        run(*shlex.split(command.replace("FOLDER", str(tmp_path))), stdin="")

    text = f"{type(refusal.value).__name__}: {refusal.value}"
    assert lacking(text, says) == [], text
    assert state() == before
