"""Queues shared among readers: each to exactly one, or an error before anything is read."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools import MessageQueue
from rmqtools.allocate import STRATEGIES, AllocateAveragely
from rmqtools.errors import ConfigError
from spark_connector.options.allocation import Allocation, queues_of_member, share_queues
from spark_connector.options.option_table import describe_options

IDS = ("10.0.0.1@reader-0", "10.0.0.1@reader-1", "10.0.0.2@reader-2")
QUEUES = [
    MessageQueue(topic, broker, number) for topic in "AB" for broker in ("a", "b") for number in range(4)
]


@dataclass(frozen=True)
class Everything:
    """A strategy of a user that shares nothing: everybody gets all."""

    name: str = "EVERYTHING"

    def allocate(self, group, client_id, queues, client_ids):
        return list(queues)


@pytest.fixture(autouse=True)
def _listed(monkeypatch):
    monkeypatch.setenv("RMQTOOLS_SPARK_PLUG_INS", __name__)


def sharing(allocator, **settings):
    known = {name: settings.pop(name) for name in ("allow_unassigned", "as_member") if name in settings}
    return Allocation(allocator=allocator, settings=settings, readers=len(IDS), reader_ids=IDS, **known)


@pytest.mark.parametrize("allocator", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", None])
@given(count=st.integers(1, 7))
def test_every_queue_is_read_by_one_reader(allocator, count):
    ids = [f"10.0.0.1@reader-{number}" for number in range(count)]

    shares = share_queues(sharing(allocator), QUEUES, ids)

    assert sorted(queue for share in shares.values() for queue in share) == sorted(QUEUES)
    assert list(shares) == ids


def test_queues_are_shared_topic_by_topic_as_groups_do():
    shares = share_queues(sharing("AVG"), QUEUES, IDS)

    assert [[queue.topic for queue in share] for share in shares.values()] == [
        ["A"] * 3 + ["B"] * 3,
        ["A"] * 3 + ["B"] * 3,
        ["A"] * 2 + ["B"] * 2,
    ]


def test_pinned_queues_go_to_readers_at_the_address_only():
    shares = share_queues(sharing("PINNED_BY_IP", ips="10.0.0.2"), QUEUES, IDS)

    assert [len(share) for share in shares.values()] == [0, 0, len(QUEUES)]


def test_queues_of_nobody_are_an_error_that_names_them():
    with pytest.raises(ConfigError, match=r"gives A/a/0, A/a/1.*to no reader.*allowUnassigned=true"):
        share_queues(sharing("PINNED_BY_IP", ips="10.0.0.9"), QUEUES, IDS)


def test_queues_of_nobody_may_be_accepted_and_are_logged(caplog):
    shares = share_queues(sharing("PINNED_BY_IP", ips="10.0.0.9", allow_unassigned=True), QUEUES[:1], IDS)

    assert sum(map(len, shares.values())) == 0
    assert "A/a/0" in caplog.text


def test_a_queue_of_two_readers_is_an_error_that_names_them():
    says = r"gives A/a/0 to more than one reader \(10.0.0.1@reader-0, 10.0.0.1@reader-1\)"

    with pytest.raises(ConfigError, match=says):
        share_queues(sharing(f"{__name__}:Everything"), QUEUES[:1], IDS[:2])


def test_a_strategy_of_the_users_own_is_fine_where_each_queue_has_one_reader():
    assert share_queues(sharing(f"{__name__}:Everything"), QUEUES, IDS[:1]) == {IDS[0]: QUEUES}


def test_a_member_would_own_what_the_strategy_says():
    assert queues_of_member(AllocateAveragely(), "g", IDS[1], QUEUES[:8], IDS) == QUEUES[3:6]


def test_the_documented_names_are_the_ones_there_are():
    assert [name for name in STRATEGIES if name not in describe_options()] == []
