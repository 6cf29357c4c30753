"""Decisions of mirrors, without any I/O."""

import pytest

from rmqtools import MessageQueue
from rmqtools.errors import BrokerError, ConfigError, DataLossError, RemotingTimeoutError
from rmqtools.model.mirror import Place
from rmqtools.policy.mirror import (
    MirrorCopies,
    Pair,
    Way,
    decode_pair,
    is_in_share,
    key_of,
    key_of_place,
    may_come_back,
    pair_queues,
    source_time_ms,
)


def queues(topic: str, *places: tuple[str, int]) -> list[MessageQueue]:
    return [MessageQueue(topic, *place) for place in places]


def test_queues_are_paired_by_broker_and_number_whatever_their_order():
    source = queues("a", ("x", 1), ("w", 0), ("x", 0))
    target = queues("b", ("n", 2), ("m", 7), ("n", 0))

    pairing = pair_queues(source, target, {})
    assert pairing.is_complete
    assert {
        (one.broker_name, one.queue_id): (two.broker_name, two.queue_id) for one, two in pairing.pairs.items()
    } == {
        ("w", 0): ("m", 7),
        ("x", 0): ("n", 0),
        ("x", 1): ("n", 2),
    }


@pytest.mark.parametrize(("source", "target"), [(2, 1), (1, 2), (0, 0)])
def test_topics_with_another_number_of_queues_are_refused_at_first(source, target):
    with pytest.raises(ConfigError, match="give them as many"):
        pair_queues(
            queues("a", *[("x", n) for n in range(source)]),
            queues("b", *[("x", n) for n in range(target)]),
            {},
        )


def recorded(*pairs: tuple[MessageQueue, MessageQueue], width: int) -> dict[MessageQueue, Pair]:
    return {target: Pair(key_of(source), width) for source, target in pairs}


def test_recorded_pairs_stay_and_added_queues_get_what_is_free():
    source = queues("a", ("x", 0), ("x", 1), ("y", 0), ("y", 1))
    target = queues("b", ("m", 0), ("m", 1), ("m", 2), ("m", 3))
    records = recorded((source[0], target[0]), (source[2], target[1]), width=2)

    pairing = pair_queues(source, target, records)
    assert [pairing.pairs[queue] for queue in source] == [target[0], target[2], target[1], target[3]]
    assert (pairing.is_complete, pairing.width) == (True, 4)


def test_a_recorded_source_queue_that_is_not_there_is_awaited_and_its_target_is_not_free():
    source, target = queues("a", ("x", 0), ("y", 0)), queues("b", ("m", 0), ("m", 1))
    records = recorded((source[0], target[0]), (source[1], target[1]), width=2)

    pairing = pair_queues([source[0], *queues("a", ("x", 1))], target, records)
    assert (pairing.pairs, pairing.awaited) == ({source[0]: target[0]}, [target[1]])
    assert pairing.unpaired == queues("a", ("x", 1))


def test_no_pair_is_made_while_a_broker_of_the_target_is_away():
    source, target = queues("a", ("x", 0), ("y", 0)), queues("b", ("m", 0), ("n", 0), ("o", 0))
    records = recorded((source[0], target[0]), width=3)  # another record is at the broker that is away

    pairing = pair_queues(source, [target[0], target[2]], records)
    assert (pairing.pairs, pairing.unpaired, pairing.lost) == ({source[0]: target[0]}, [source[1]], 1)
    assert not pairing.is_complete
    all_paired = pair_queues(source[:1], [target[0], target[2]], records)
    assert (all_paired.unpaired, all_paired.lost, all_paired.is_complete) == ([], 1, False)


def test_a_record_is_read_as_it_was_written_and_does_not_depend_on_the_cluster():
    pair = Pair(key_of(MessageQueue("orders", "broker-a", 3)), 1000)

    assert decode_pair(pair.encode()) == pair
    assert pair.encode() < 2**63
    assert pair.key == key_of_place("orders/broker-a/3") != key_of_place("orders/broker-a/4")


def test_a_brokers_clock_is_its_start_and_the_time_since_then():
    info = {"bootTimestamp": "1000000", "runtime": "[ 1,001 days, 2 hours, 3 minutes, 4 seconds ]"}

    assert source_time_ms(info) == 1_000_000 + 1000 * (1001 * 86_400 + 2 * 3600 + 3 * 60 + 4)
    assert source_time_ms({"bootTimestamp": "1"}) is None


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


def test_a_mirror_copies_its_share_of_the_keys():
    way = Way(Place("east", "t"), Place("west", "u"))
    copies = MirrorCopies(way, tags=(), share=0.1, mark="m")
    keys = [b"key-%d" % number for number in range(1000)]

    assert [key for key in keys if copies.properties([b"KEYS\x01" + key], 0, 0) is not None] == [
        key for key in keys if is_in_share(key, 0.1)
    ]


def test_a_source_is_waited_for_where_it_may_come_back():
    assert may_come_back(RemotingTimeoutError("late"))
    assert may_come_back(BrokerError(2, "busy", "a:1"))
    assert not may_come_back(BrokerError(16, "no permission", "a:1"))
    assert not may_come_back(DataLossError("gone"))
