"""The table of built-in strategies, and strategies that consumers name."""

from typing import get_args

import pytest

from rmqtools import PullConsumer, PushConsumer, allocate
from rmqtools.allocate import (
    AllocateAveragely,
    AllocateAveragelyByCircle,
    AllocateByPins,
    AllocateMachineRoomNearby,
    AllocatePinnedByIp,
)
from rmqtools.config import PullConsumerConfig, PushConsumerConfig
from rmqtools.errors import ConfigError
from rmqtools.policy.allocate.strategy_table import BUILT_IN, JAVA_NAMES, StrategyName, strategy_named
from tools.reference_pages import reference_pages

OWN = AllocateAveragelyByCircle()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(None, AllocateAveragely(), id="default"),
        pytest.param("AVG_BY_CIRCLE", OWN, id="name"),
        pytest.param("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", AllocateMachineRoomNearby(OWN), id="inner"),
        pytest.param(OWN, OWN, id="object"),
    ],
)
def test_a_consumers_strategy_is_an_object_or_a_name(given, expected):
    assert strategy_named(given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param("AVGE", r"unknown allocation strategy 'AVGE' \(did you mean 'AVG'\?\)", id="unknown"),
        pytest.param("PINS", r"pass .*strategy_of\('PINS', when_absent=...\)", id="options"),
        pytest.param("a:B", r"pass rmqtools.allocate.strategy_of\('a:B'\)", id="class-of-a-user"),
    ],
)
def test_a_name_that_is_not_enough_is_refused_with_the_remedy(given, message):
    with pytest.raises(ConfigError, match=message):
        strategy_named(given)


@pytest.mark.parametrize(
    "outer",
    [
        AllocateMachineRoomNearby,
        lambda inner: AllocatePinnedByIp(["10.0.0.1"], inner, when_absent="nobody"),
        lambda inner: AllocateByPins(AllocateMachineRoomNearby(inner), when_absent="nobody"),
    ],
)
def test_pins_inside_another_strategy_are_refused(outer):
    with pytest.raises(ConfigError, match="would never get pins: want PINS around it"):
        strategy_named(outer(AllocateByPins(when_absent="everybody")))


def test_both_consumers_take_a_name():
    PushConsumer(PushConsumerConfig(name_server="h:1", group="g"), strategy="CONSISTENT_HASH").close()
    PullConsumer(PullConsumerConfig(name_server="h:1", group="g"), strategy="CONSISTENT_HASH").close()
    with pytest.raises(ConfigError, match="did you mean 'CONSISTENT_HASH'"):
        PushConsumer(PushConsumerConfig(name_server="h:1", group="g"), strategy="CONSISTENT_HASHED")  # type: ignore[arg-type]  # the mistake


def test_type_checkers_know_the_names_that_a_consumer_takes():
    free = [name for name, entry in BUILT_IN.items() if not entry.required]
    nearby = [f"MACHINE_ROOM_NEARBY-{name}" for name in free if name != "MACHINE_ROOM_NEARBY"]

    assert {*get_args(StrategyName)} == {*free, *nearby}
    assert [strategy_named(name).name for name in get_args(StrategyName)]


def test_every_strategy_of_the_table_is_public_and_documented():
    page = reference_pages()["reference/allocate.md"]

    for entry in BUILT_IN.values():
        assert entry.make.__name__ in allocate.__all__
        assert entry.make.__name__ in page
        assert entry.about.endswith((".", ":"))


def test_javas_classes_have_our_names():
    assert JAVA_NAMES["AllocateMessageQueueAveragely"] == "AVG"
    assert len(JAVA_NAMES) == 6


def test_no_strategy_declares_its_name_a_class_variable():
    """Pyright takes such a class for no :class:`AllocateMessageQueueStrategy`, whose name is of an object."""
    classes = [
        each for each in vars(allocate).values() if isinstance(each, type) and hasattr(each, "allocate")
    ]

    assert len(classes) > 7
    assert [each for each in classes if "ClassVar" in str(each.__annotations__.get("name"))] == []
