import pytest

from rmqtools.allocate import AllocateByMachineRoom
from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue
from tests.unit.policy.allocate.groups import shares_of


def test_one_text_is_not_several_rooms():
    with pytest.raises(ConfigError, match="want several rooms"):
        AllocateByMachineRoom("r1")


@pytest.mark.parametrize(
    ("broker_name", "served"),
    [("r1@a", True), ("@a", True), ("r1@a@@", True), ("r1", False), ("r1@", False), ("r1@@", False),
     ("r1@a@b", False), ("r1@@a", False), ("@", False), ("", False)],
)  # fmt: skip
def test_a_broker_has_a_room_if_its_name_has_two_parts_by_javas_split(broker_name, served):
    queue = MessageQueue("T", broker_name, 0)

    assert shares_of(AllocateByMachineRoom(["r1", ""]), [queue], ["m"]) == {"m": [queue] if served else []}
