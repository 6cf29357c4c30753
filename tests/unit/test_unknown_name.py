"""The nearest known name, in the texts of errors."""

import pytest

from rmqtools.unknown_name import name_hint, nearest_name, unknown_name


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        pytest.param("ordres", "orders", id="letters-in-another-order"),
        pytest.param("ORDERS", "orders", id="another-case"),
        pytest.param("x", None, id="nothing-alike"),
    ],
)
def test_the_nearest_name_is_found_in_any_case(name, nearest):
    assert nearest_name(name, ["audit", "orders"]) == nearest


def test_of_names_that_differ_in_case_only_the_first_is_named():
    assert nearest_name("ordres", ["Orders", "orders"]) == "Orders"


def test_a_hint_names_the_nearest_name_or_all_in_their_order():
    assert name_hint("ordres", ["orders", "audit"]) == "did you mean 'orders'?"
    assert name_hint("x", ["orders", "audit"]) == "known: orders, audit"


def test_of_many_names_a_hint_lists_the_three_nearest():
    names = [f"{letter}{letter}" for letter in "abcdefghijklm"]

    assert name_hint("bc", names) == "13 are known, the nearest: cc, bb, mm"


def test_the_text_of_an_unknown_name_sorts_the_known_ones():
    assert (
        unknown_name("topic", "ordres", ["orders", "audit"])
        == "unknown topic 'ordres' (did you mean 'orders'?)"
    )
    assert unknown_name("topic", "x", ["orders", "audit"]) == "unknown topic 'x' (known: audit, orders)"
