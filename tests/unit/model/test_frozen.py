"""Values made unfrozen equal those made by ``__init__``."""

import pickle

import pytest

from rmqtools import MessageQueue
from rmqtools.model.frozen import maker_of


def test_a_value_made_unfrozen_is_as_any_other():
    made, queue = maker_of(MessageQueue)("T", "broker-a", 3), MessageQueue("T", "broker-a", 3)

    assert made == queue
    assert hash(made) == hash(queue)
    assert pickle.loads(pickle.dumps(made)) == queue


@pytest.mark.parametrize("values", [("T", "broker-a"), ("T", "broker-a", 3, 4)])
def test_a_value_for_every_field_no_more_no_less(values):
    with pytest.raises(TypeError, match="argument"):
        maker_of(MessageQueue)(*values)
