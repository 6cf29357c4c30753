import pytest

from rmqtools.allocate import NO_PINS, AllocateAveragelyByCircle, AllocateByPins, Pins
from rmqtools.errors import ConfigError
from tests.unit.policy.allocate.groups import show_shares

STRATEGY = AllocateByPins(AllocateAveragelyByCircle(), when_absent="nobody")
ALL = show_shares(AllocateAveragelyByCircle())
NONE = [""] * 4


def test_before_pins_are_known_a_member_takes_nothing():
    assert show_shares(STRATEGY) == NONE


@pytest.mark.parametrize("pins", [NO_PINS, Pins.cleared(7)], ids=["none", "cleared"])
def test_without_pins_all_members_share(pins):
    assert show_shares(STRATEGY.with_pins(pins)) == ALL


def test_the_pinned_share_all_and_the_others_get_nothing():
    owned = show_shares(STRATEGY.with_pins(Pins(1, ["10.0.0.3", "10.0.0.4"])))

    assert owned == ["", "", "a0 a2 b1 c0 c2", "a1 b0 b2 c1"]


def test_with_pins_leaves_the_strategy_as_it_was():
    STRATEGY.with_pins(Pins(1, ["10.0.0.3"]))

    assert STRATEGY.pins is None


@pytest.mark.parametrize(
    ("of_strategy", "of_pins", "expected"),
    [
        ("nobody", None, NONE),
        ("everybody", None, ALL),
        ("nobody", "everybody", ALL),
        ("everybody", "nobody", NONE),
    ],
)
def test_while_nobody_pinned_is_there_the_pins_decide_then_the_strategy(of_strategy, of_pins, expected):
    strategy = AllocateByPins(AllocateAveragelyByCircle(), when_absent=of_strategy)

    assert show_shares(strategy.with_pins(Pins(1, ["10.9.9.9"], when_absent=of_pins))) == expected


def test_an_unknown_when_absent_is_refused():
    with pytest.raises(ConfigError, match="anybody"):
        AllocateByPins(when_absent="anybody")  # type: ignore[arg-type]  # the mistake
