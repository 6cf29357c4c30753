import sys
from dataclasses import dataclass

import pytest

from rmqtools.allocate import (
    STRATEGIES,
    AllocateAveragely,
    AllocateAveragelyByCircle,
    AllocateByConfig,
    AllocateByConsistentHash,
    AllocateByMachineRoom,
    AllocateByPins,
    AllocateMachineRoomNearby,
    AllocatePinnedByIp,
    RoomByPrefix,
    strategy_of,
)
from rmqtools.errors import ConfigError
from rmqtools.model.queue import MessageQueue

HERE = __name__
NEEDED = {
    "CONFIG": {"queues": "{}"},
    "MACHINE_ROOM": {"consumer_idcs": "r1"},
    "PINNED_BY_IP": {"ips": "::1", "when_absent": "nobody"},
    "PINS": {"when_absent": "nobody"},
}


@dataclass(frozen=True)
class Own:
    """A user's strategy."""

    rack_name: str = "r0"
    name: str = "OWN"

    def allocate(self, group, client_id, queues, client_ids):
        return list(queues)


class Nameless:
    def allocate(self, group, client_id, queues, client_ids):
        return []


def make_own(**options):
    return Own(rack_name="+".join(f"{key}={value}" for key, value in options.items()))


class Rooms(RoomByPrefix):
    """A resolver named by text."""


not_callable = AllocateAveragely()


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("AVG", {}, AllocateAveragely()),
        ("AVG_BY_CIRCLE", {}, AllocateAveragelyByCircle()),
        ("CONFIG", {"queues": '{"T":{"b":[1,0]}}'},
         AllocateByConfig((MessageQueue("T", "b", 1), MessageQueue("T", "b", 0)))),
        ("CONFIG", {"queues": []}, AllocateByConfig(())),
        ("MACHINE_ROOM", {"consumerIdcs": "r1, r2"}, AllocateByMachineRoom(("r1", "r2"))),
        ("MACHINE_ROOM_NEARBY", {}, AllocateMachineRoomNearby()),
        ("MACHINE_ROOM_NEARBY-CONSISTENT_HASH", {}, AllocateMachineRoomNearby(AllocateByConsistentHash())),
        ("MACHINE_ROOM_NEARBY", {"inner": "AVG_BY_CIRCLE", "resolver": f"{HERE}:Rooms"},
         AllocateMachineRoomNearby(AllocateAveragelyByCircle(), Rooms())),
        ("CONSISTENT_HASH", {}, AllocateByConsistentHash(10)),
        ("CONSISTENT_HASH", {"virtualnodes": "20"}, AllocateByConsistentHash(20)),
        ("PINNED_BY_IP", {"ips": "10.0.0.1,10.1.0.0/16", "whenAbsent": "everybody"},
         AllocatePinnedByIp(["10.0.0.1", "10.1.0.0/16"], when_absent="everybody")),
        ("PINNED_BY_IP", {"ips": ["::1"], "when-absent": "nobody", "inner": AllocateAveragelyByCircle()},
         AllocatePinnedByIp(["::1"], AllocateAveragelyByCircle(), when_absent="nobody")),
        ("PINS", {"when_absent": "nobody", "inner": "CONSISTENT_HASH"},
         AllocateByPins(AllocateByConsistentHash(), when_absent="nobody")),
        (f"{HERE}:Own", {}, Own()),
        (f"{HERE}:Own", {"rackName": "r1,r2"}, Own("r1,r2")),
        (f"{HERE}:make_own", {"any_Thing": "1", "text": 2}, Own("any_Thing=1+text=2")),
    ],
)  # fmt: skip
def test_a_strategy_is_made_from_text_and_options(text, options, expected):
    assert strategy_of(text, **options) == expected


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_table_says_the_names_that_strategies_have(name):
    assert strategy_of(name, **NEEDED.get(name, {})).name.partition("-")[0] == name


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("AVGS", {}, "unknown allocation strategy 'AVGS' .did you mean 'AVG'"),
        ("avg", {}, "did you mean 'AVG'"),
        ("", {}, "unknown allocation strategy"),
        ("AVG-AVG", {}, "unknown allocation strategy"),
        ("MACHINE_ROOM_NEARBY-", {}, "unknown allocation strategy ''"),
        ("MACHINE_ROOM_NEARBY-AVG", {"inner": "AVG"}, "unknown option .* 'inner'"),
        ("AVG", {"name": "OTHER"}, "unknown option of strategy AVG 'name'"),
        ("PINNED_BY_IP", {"ip": "10.0.0.1"}, "did you mean 'ips'"),
        ("PINNED_BY_IP", {"ips": "10.0.0.1"}, "when_absent"),
        ("PINNED_BY_IP", {"ips": "", "when_absent": "nobody"}, "ips is empty"),
        ("PINS", {}, "strategy PINS: missing a required"),
        ("CONSISTENT_HASH", {"virtual_nodes": "many"}, "virtual_nodes='many'"),
        ("CONFIG", {"queues": "{"}, "queues='{'"),
        ("CONFIG", {"queues": "[]"}, "queues='.*'"),
        ("MACHINE_ROOM_NEARBY", {"inner": "MINE"}, "unknown allocation strategy 'MINE'"),
        ("no_such_module:Class", {}, "no_such_module"),
        (f"{HERE}:NoSuch", {}, "NoSuch"),
        (f"{HERE}:", {}, "want module:Class"),
        (":Own", {}, "want module:Class"),
        (".relative:Own", {}, "want module:Class"),
        (f"{HERE}:not_callable", {}, "want a class"),
        (f"{HERE}:Nameless", {}, "is none"),
        (f"{HERE}:Own", {"row": "1"}, "unknown option"),
        ("builtins:dict", {}, "wrap it in a function"),
    ],
)
def test_what_cannot_be_made_is_a_config_error(text, options, message):
    with pytest.raises(ConfigError, match=message):
        strategy_of(text, **options)


def test_an_error_inside_a_users_class_is_shown_as_it_is(monkeypatch):
    def broken():
        raise RuntimeError("the user's own")

    monkeypatch.setattr(sys.modules[HERE], "Own", broken)

    with pytest.raises(RuntimeError, match="the user's own"):
        strategy_of(f"{HERE}:Own")
