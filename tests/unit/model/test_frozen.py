"""Values made unfrozen equal those made by ``__init__``."""

import pickle
from dataclasses import dataclass

import pytest

from rmqtools import MessageQueue
from rmqtools.model import frozen
from rmqtools.model.frozen import maker_of


@dataclass(slots=True)
class Changing:
    first: int
    second: str


@pytest.mark.parametrize("has_twins", [True, False])
def test_a_class_that_is_not_frozen_has_the_same_values(has_twins, monkeypatch):
    if not has_twins:
        monkeypatch.setattr(frozen, "twins", None)

    made = maker_of(Changing)(1, second="b")
    made.first = 2

    assert made == Changing(2, "b")


def test_a_value_made_unfrozen_is_as_any_other():
    made, queue = maker_of(MessageQueue)("T", "broker-a", 3), MessageQueue("T", "broker-a", 3)

    assert made == queue
    assert hash(made) == hash(queue)
    assert pickle.loads(pickle.dumps(made)) == queue


@pytest.mark.parametrize("values", [("T", "broker-a"), ("T", "broker-a", 3, 4)])
def test_a_value_for_every_field_no_more_no_less(values):
    with pytest.raises(TypeError, match="argument"):
        maker_of(MessageQueue)(*values)
