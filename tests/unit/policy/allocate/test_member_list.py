import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.allocate import (
    AllocateAveragely,
    AllocateAveragelyByCircle,
    AllocateByMachineRoom,
    AllocateMachineRoomNearby,
    AllocatePinnedByIp,
    share,
)
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.member_list import has_doubles, own_entries, with_one_entry

QUEUES = [MessageQueue("T", broker, number) for broker in ("room@a", "room@b") for number in range(4)]


class KnownRooms:
    """Machine rooms by the client ids of a table."""

    def broker_deploy_in(self, queue):
        return queue.broker_name

    def consumer_deploy_in(self, client_id):
        return {"a": "room@a", "b": "room@a", "c": "room@b", "d": "room@c"}[client_id]


@pytest.mark.parametrize(("ids", "doubled"), [(["a", "b"], False), (["a", "b", "a"], True), ([], False)])
def test_a_list_has_doubles_if_an_id_is_there_twice(ids, doubled):
    assert has_doubles(ids) is doubled


def test_two_processes_with_one_id_take_different_entries():
    addresses = ["10.0.0.1:7", "10.0.0.1:5", "10.0.0.2:9"]
    of_one = own_entries(addresses, {"10.0.0.1:5", "10.0.0.1:7"}.__contains__)
    of_other = own_entries(reversed(addresses), {"10.0.0.2:9"}.__contains__)

    assert (of_one, of_other) == ((0, 1), (2,))


def test_behind_nat_all_entries_are_taken():
    assert own_entries(["203.0.113.7:1024", "203.0.113.7:1025"], lambda addr: False) == (0, 1)


def test_the_other_entries_of_an_id_keep_their_place_and_lose_their_name():
    assert with_one_entry(["a", "b", "b", "c"], "b", 1) == ["a", "b\0", "b", "c"]
    assert with_one_entry(["a", "b", "b", "c"], "b", 7) == ["a", "b\0", "b", "c"]


@pytest.mark.parametrize(
    "strategy",
    [
        AllocateAveragely(),
        AllocateAveragelyByCircle(),
        AllocateByMachineRoom(["room"]),
        AllocateMachineRoomNearby(resolver=KnownRooms()),
    ],
)
@given(times=st.dictionaries(st.sampled_from("abcd"), st.integers(1, 4), min_size=1))
def test_members_that_take_all_their_entries_own_each_queue_once(strategy, times):
    members = [name for name, count in times.items() for _ in range(count)]
    shares = [
        share(strategy, "g", name, QUEUES, members, tuple(range(count))) for name, count in times.items()
    ]

    assert sorted(queue for mine in shares for queue in mine) == QUEUES


def test_with_the_first_entry_alone_the_queues_of_the_others_have_no_owner():
    assert share(AllocateAveragely(), "g", "a", QUEUES, ["a", "a"]) == QUEUES[:4]
    assert share(AllocateAveragely(), "g", "a", QUEUES, ["a", "a"], (0, 1)) == QUEUES


def test_pinned_members_take_all_their_entries():
    pinned = AllocatePinnedByIp(["10.0.0.1"], when_absent="nobody")
    members = ["10.0.0.1@x", "10.0.0.1@x", "10.0.0.2@y"]

    assert share(pinned, "g", "10.0.0.1@x", QUEUES, members, (0, 1)) == QUEUES
