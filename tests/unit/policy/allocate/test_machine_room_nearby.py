import pytest

from rmqtools.allocate import (
    AllocateAveragely,
    AllocateMachineRoomNearby,
    RoomByPrefix,
)
from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue
from tests.unit.policy.allocate.groups import shares_of


def queues_of(*broker_names):
    return [MessageQueue("T", name, number) for name in broker_names for number in range(2)]


def test_the_separator_of_rooms_can_be_another():
    strategy, queues = AllocateMachineRoomNearby(AllocateAveragely(), RoomByPrefix("@")), queues_of("r1@a")

    assert shares_of(strategy, queues, ["r1@x", "r2@x"]) == {"r1@x": queues, "r2@x": []}


@pytest.mark.parametrize(
    ("broker_name", "member"),
    [("roomless", "r1-x"), ("-a", "r1-x"), ("r1-a", "roomless"), ("r1-a", "-x")],
)
def test_a_queue_or_member_without_a_room_is_an_error_for_everybody(broker_name, member):
    queues, members = queues_of("r1-b", broker_name), ["r1-w", member]

    with pytest.raises(ConfigError, match="has no machine room"):
        shares_of(AllocateMachineRoomNearby(), queues, members)


@pytest.mark.parametrize("missing", ["inner", "resolver"])
def test_both_parts_are_wanted(missing):
    with pytest.raises(ConfigError, match=f"{missing}=None.*want both"):
        AllocateMachineRoomNearby(**{missing: None})  # type: ignore[arg-type]  # the mistake
