"""A few hundred damaged inputs a decoder, and whether anything could be found."""

from typing import Any

import pytest

from tools.measure.fuzz.run import attempt
from tools.measure.fuzz.targets import TARGETS, Target

INPUTS = 400


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_is_decoded_or_refused_with_our_error(name):
    assert [str(found) for number in range(INPUTS) if (found := attempt(name, number))] == []


@pytest.mark.parametrize("name", TARGETS)
def test_undamaged_input_is_decoded(name):
    if name in ("frames", "messages", "arrow", "batches"):
        for seed in TARGETS[name].seeds:
            TARGETS[name].decode(seed)
    else:
        assert TARGETS[name].seeds


def test_a_decoder_that_raises_an_error_of_pythons_is_found():
    target = Target(lambda data: data.decode(), [b"\xc3\xa9" * 20])

    found = [str(each) for number in range(50) if (each := attempt("mine", number, target))]

    assert "UnicodeDecodeError" in found[0]
    assert "--target mine --number " in found[0]


def test_a_number_is_the_same_input_again():
    def refuse(data: bytes) -> None:
        raise ValueError

    target = Target(refuse, [b"0123456789"])

    found: list[Any] = [attempt("x", number, target) for number in (7, 7, 8)]

    assert found[0].data == found[1].data != found[2].data
