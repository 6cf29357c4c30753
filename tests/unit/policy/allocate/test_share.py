import pickle
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.allocate import (
    AllocateAveragely,
    AllocateAveragelyByCircle,
    AllocateByConfig,
    AllocateByConsistentHash,
    AllocateByMachineRoom,
    AllocateByPins,
    AllocateMachineRoomNearby,
    AllocateMessageQueueStrategy,
    AllocatePinnedByIp,
    Pins,
    share,
)
from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue
from tests.unit.policy.allocate.groups import (
    CLASSIC_QUEUES,
    GROUP,
    RoomOfInstance,
    any_members,
    any_queues,
    shares_of,
)

COMPLETE: dict[str, AllocateMessageQueueStrategy] = {
    "avg": AllocateAveragely(),
    "circle": AllocateAveragelyByCircle(),
    "hash": AllocateByConsistentHash(),
    "nearby": AllocateMachineRoomNearby(resolver=RoomOfInstance()),
    "nearby-hash": AllocateMachineRoomNearby(AllocateByConsistentHash(), RoomOfInstance()),
    "pinned": AllocatePinnedByIp(["10.0.0.0/29"], when_absent="everybody"),
    "pinned-nearby": AllocatePinnedByIp(
        ["10.0.0.0/29"], AllocateMachineRoomNearby(resolver=RoomOfInstance()), when_absent="everybody"
    ),
    "pins": AllocateByPins(when_absent="everybody").with_pins(Pins(1, ["10.0.0.1", "10.0.0.2"])),
    "pins-cleared": AllocateByPins(when_absent="nobody").with_pins(Pins.cleared(2)),
}
PARTIAL: dict[str, AllocateMessageQueueStrategy] = {
    "room": AllocateByMachineRoom(["r1"]),
    "config": AllocateByConfig(tuple(CLASSIC_QUEUES)),
    "pinned-nobody": AllocatePinnedByIp(["10.0.0.1"], when_absent="nobody"),
}
strategy_names = pytest.mark.parametrize("name", COMPLETE)


@dataclass(frozen=True)
class Recorder:
    """A user's strategy that remembers what it was asked."""

    asked: list[Any]
    name: str = "RECORDER"

    def allocate(self, group, client_id, queues, client_ids):
        self.asked.append((group, client_id, queues, client_ids))
        return list(reversed(queues))


@strategy_names
@given(queues=any_queues, members=any_members)
def test_shares_are_disjoint_and_complete(name, queues, members):
    owned = [queue for mine in shares_of(COMPLETE[name], queues, members).values() for queue in mine]

    assert sorted(owned) == sorted(queues)


@strategy_names
@given(queues=any_queues, members=any_members, data=st.data())
def test_shares_do_not_depend_on_the_order_of_the_lists(name, queues, members, data):
    shuffled = data.draw(st.permutations(sorted(queues))), data.draw(st.permutations(sorted(members)))

    assert shares_of(COMPLETE[name], *shuffled) == shares_of(COMPLETE[name], queues, members)


@pytest.mark.parametrize("strategy", (COMPLETE | PARTIAL).values(), ids=COMPLETE | PARTIAL)
def test_a_strategy_is_a_value_that_survives_pickling(strategy):
    copied = pickle.loads(pickle.dumps(strategy))

    assert copied == strategy
    assert copied.name == strategy.name
    assert not hasattr(copied, "__dict__")


def test_a_strategy_gets_both_lists_sorted_as_java_sorts_them():
    # By code point U+FFEE comes before U+10000, by UTF-16 unit after it.
    first, second = MessageQueue("T", "\U00010000", 0), MessageQueue("T", "\uffee", 0)
    recorder = Recorder([])

    share(recorder, GROUP, "\uffee@1", {second, first}, ["\uffee@1", "\U00010000@1", "a@1"])

    assert recorder.asked == [
        (GROUP, "\uffee@1", [first, second], ["a@1", "\U00010000@1", "\uffee@1"]),
    ]


def test_queues_that_are_not_among_those_given_are_left_out():
    elsewhere = replace(CLASSIC_QUEUES[0], topic="ANOTHER")
    strategy = AllocateByConfig([elsewhere, CLASSIC_QUEUES[1]])

    assert share(strategy, GROUP, "m", CLASSIC_QUEUES, ["m"]) == [CLASSIC_QUEUES[1]]


@pytest.mark.parametrize(
    ("client_id", "queues", "client_ids", "missing"),
    [
        pytest.param("", [], [], "no client id", id="client-id-first"),
        pytest.param("m", [], [], "no queue", id="then-queues"),
        pytest.param("m", CLASSIC_QUEUES, [], "no member", id="then-members"),
        pytest.param(None, None, None, "no client id", id="none-is-empty"),
        pytest.param("other", CLASSIC_QUEUES, [], "no member", id="before-the-look-up"),
    ],
)
def test_empty_inputs_are_refused_in_javas_order_before_the_strategy_is_asked(
    client_id, queues, client_ids, missing
):
    recorder = Recorder([])

    with pytest.raises(ConfigError, match=missing):
        share(recorder, GROUP, client_id, queues, client_ids)
    assert recorder.asked == []
