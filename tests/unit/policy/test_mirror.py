"""Decisions of mirrors, without any I/O."""

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import BrokerError, ConfigError, DataLossError, RemotingTimeoutError
from rmqtools.model.mirror import Place
from rmqtools.policy.mirror import Way, is_in_share, may_come_back, pair_queues


def queues(topic: str, *places: tuple[str, int]) -> list[MessageQueue]:
    return [MessageQueue(topic, *place) for place in places]


def test_queues_are_paired_by_broker_and_number_whatever_their_order():
    source = queues("a", ("x", 1), ("w", 0), ("x", 0))
    target = queues("b", ("n", 2), ("m", 7), ("n", 0))

    pairs = pair_queues(source, target)
    assert [(one.broker_name, one.queue_id) for one, _ in pairs] == [("w", 0), ("x", 0), ("x", 1)]
    assert [(one.broker_name, one.queue_id) for _, one in pairs] == [("m", 7), ("n", 0), ("n", 2)]


@pytest.mark.parametrize(("source", "target"), [(2, 1), (1, 2), (0, 0)])
def test_topics_with_another_number_of_queues_are_refused(source, target):
    with pytest.raises(ConfigError, match="give them as many"):
        pair_queues(
            queues("a", *[("x", n) for n in range(source)]), queues("b", *[("x", n) for n in range(target)])
        )


def test_a_message_does_not_come_back_to_a_cluster_whatever_the_topic():
    way = Way(Place("east", "t"), Place("west", "u"))

    assert way.next("") == "east/t"
    assert way.next("north/t") == "north/t east/t"
    assert way.next("west/other north/t") is None
    assert way.next("western/u") == "western/u east/t"


def test_within_a_cluster_a_message_does_not_come_back_to_a_topic():
    way = Way(Place("east", "t"), Place("east", "u"))

    assert way.next("east/v") == "east/v east/t"
    assert way.next("east/u east/v") is None


def test_a_share_is_the_part_of_keys_that_was_asked_for():
    keys = [b"key-%d" % number for number in range(10_000)]

    assert 70 < sum(is_in_share(key, 0.01) for key in keys) < 130
    assert all(is_in_share(key, 1.0) for key in keys)
    assert {key for key in keys if is_in_share(key, 0.01)} <= {key for key in keys if is_in_share(key, 0.1)}


def test_a_source_is_waited_for_where_it_may_come_back():
    assert may_come_back(RemotingTimeoutError("late"))
    assert may_come_back(BrokerError(2, "busy", "a:1"))
    assert not may_come_back(BrokerError(16, "no permission", "a:1"))
    assert not may_come_back(DataLossError("gone"))
