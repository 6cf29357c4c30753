import timeit

import pytest

from rmqtools.allocate import (
    AllocateAveragely,
    AllocateAveragelyByCircle,
    AllocateByConsistentHash,
    share,
)
from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate import by_consistent_hash
from tests.unit.policy.allocate.groups import shares_of

MANY_QUEUES = [MessageQueue("T", f"broker-{n % 16}", n // 16) for n in range(1024)]
MANY_MEMBERS = [f"10.0.{n // 250}.{n % 250}@{n}" for n in range(1000)]


def test_of_equal_hashes_the_last_put_owns(monkeypatch):
    monkeypatch.setattr(by_consistent_hash, "consistent_hash", lambda key: 7)

    owned = shares_of(AllocateByConsistentHash(), MANY_QUEUES[:3], ["a", "b"])

    assert [len(mine) for mine in owned.values()] == [0, 3]


def test_a_hash_belongs_to_the_node_at_it_and_beyond_the_last_one_to_the_first(monkeypatch):
    hashes = {"a-0": 10, "b-0": 20, str(MANY_QUEUES[0]): 10, str(MANY_QUEUES[1]): 11, str(MANY_QUEUES[2]): 21}
    monkeypatch.setattr(by_consistent_hash, "consistent_hash", hashes.__getitem__)

    owned = shares_of(AllocateByConsistentHash(1), MANY_QUEUES[:3], ["a", "b"])

    assert owned == {"a": [MANY_QUEUES[0], MANY_QUEUES[2]], "b": [MANY_QUEUES[1]]}


def test_a_member_listed_twice_has_twice_as_many_nodes(monkeypatch):
    put = []
    monkeypatch.setattr(by_consistent_hash, "consistent_hash", lambda key: put.append(key) or len(put))

    shares_of(AllocateByConsistentHash(2), MANY_QUEUES[:1], ["a", "a", "b"])

    assert put[:6] == ["a-0", "a-1", "a-2", "a-3", "b-0", "b-1"]


def test_fewer_than_no_virtual_nodes_are_refused():
    with pytest.raises(ConfigError, match="virtual_nodes=-1"):
        AllocateByConsistentHash(-1)
    assert AllocateByConsistentHash(0).virtual_nodes == 0


@pytest.mark.process
@pytest.mark.parametrize(
    "strategy",
    [AllocateAveragely(), AllocateAveragelyByCircle(), AllocateByConsistentHash()],
    ids=["avg", "circle", "hash"],
)
def test_a_share_of_1024_queues_among_1000_members_takes_milliseconds(strategy):
    seconds = timeit.repeat(
        lambda: share(strategy, "g", MANY_MEMBERS[500], MANY_QUEUES, MANY_MEMBERS), number=1, repeat=3
    )

    assert min(seconds) < 0.5  # ten times the 50 ms that are the aim: machines are busy
