"""A stream's offsets are committed to a group; failures are retried, and logged once."""

from types import SimpleNamespace

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import BrokerError, ConfigError, RemotingTimeoutError
from spark_connector.read.group_progress import GroupProgress

A = MessageQueue("T", "a", 0)


class ScriptedGroup:
    """The answers of an admin, as far as commits need them."""

    def __init__(self) -> None:
        self.members: list[str] = []
        self.error: Exception | None = None
        self.committed: list[int] = []

    def fetch_consumer_connection(self, group):
        return SimpleNamespace(connection_set=[SimpleNamespace(client_id=one) for one in self.members])

    def update_consumer_offset(self, group, queue, offset):
        if self.error:
            raise self.error
        self.committed.append(offset)


@pytest.fixture
def group():
    return ScriptedGroup()


@pytest.fixture
def tell(group, clock):
    """What the reader does whenever Spark asks for the latest offset."""
    progress = GroupProgress(group, "g", clock)

    def tell(end: int) -> None:
        if progress.is_due(end):
            progress.commit({A: end}, end)

    return tell


def test_the_end_of_a_batch_is_committed_once(group, tell):
    for end in (5, 5, 7, 7):
        tell(end)

    assert group.committed == [5, 7]


@pytest.mark.parametrize("trouble", ["silent", "members"])
def test_a_commit_that_failed_is_tried_again_without_another_batch(group, tell, clock, caplog, trouble):
    group.error = RemotingTimeoutError("no answer") if trouble == "silent" else None
    group.members = ["10.0.0.1@x"] if trouble == "members" else []
    for _ in range(100):
        tell(5)
        clock.advance(0.1)
    group.error, group.members = None, []

    clock.advance(5)
    tell(5)

    assert group.committed == [5]
    assert caplog.text.count("offsets_not_committed") == 1


def test_a_refused_commit_is_final_until_the_next_batch(group, tell, clock, caplog):
    group.error = BrokerError(17, "no topic", "a:1")
    tell(5)
    clock.advance(60)
    tell(5)

    assert caplog.text.count("offsets_not_committed") == 1


def test_a_group_with_members_is_refused_at_the_start(group, clock):
    group.members = ["10.0.0.1@x"]

    with pytest.raises(ConfigError, match=r"live members \(10.0.0.1@x\)"):
        GroupProgress(group, "g", clock).check_unused()
