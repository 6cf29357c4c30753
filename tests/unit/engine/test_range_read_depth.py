"""How many pulls a range read keeps on the wire."""

from itertools import pairwise

from rmqtools.engine.range_read import IN_FLIGHT
from tests.support.scripted_queue import Broker, flat, read


def test_answers_of_changing_sizes_do_not_make_the_broker_send_everything_many_times():
    broker = Broker(0, 3000, lambda offset: 1 + offset * 7 % 31)

    assert flat(read(broker, 0, 3000)) == list(range(3000))
    assert len(broker.pulls) < IN_FLIGHT + 3 * len(set(broker.pulls))


def test_where_predictions_come_true_nothing_is_asked_twice():
    broker = Broker(0, 3200)

    read(broker, 0, 3200)

    assert all(after - before == 32 for before, after in pairwise(broker.pulls))
