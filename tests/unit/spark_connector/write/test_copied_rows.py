"""Rows that were read become rows that can be written."""

import pyarrow as pa
import pytest

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError
from spark_connector.write.copied_rows import check_queues, copied_rows, values_of, without_properties
from spark_connector.write.stamps import HASH, STAMP
from tests.support.fake import Fake

PROPERTIES = pa.map_(pa.string(), pa.string())


def maps(*entries):
    return pa.array(entries, PROPERTIES)


def rows(*entries, **columns):
    return pa.record_batch({"body": pa.array([b"x"] * len(entries)), "properties": maps(*entries), **columns})


def dicts(column):
    return [None if pairs is None else dict(pairs) for pairs in column.to_pylist()]


def test_properties_of_brokers_and_clients_are_left_out_and_those_of_users_stay():
    read = {"UNIQ_KEY": "1", "colour": "blue", "TAGS": "t", "KEYS": "k", "CLUSTER": "c", "имя": "值"}

    copied = copied_rows(
        rows(read, {}, None, {"MSG_REGION": "x", "RMQTOOLS_MARK": "5 w ", "RMQTOOLS_WAY": "a/b"})
    )

    assert dicts(copied.column("properties")) == [{"colour": "blue", "имя": "值"}, {}, None, {}]
    assert copied.schema.names == ["body", "properties"]


def test_slices_are_cut_right():
    whole = maps({"a": "1"}, {"UNIQ_KEY": "2", "b": "2"}, None, {"c": "3", "UNIQ_KEY": "4"}, {"d": "5"})

    assert dicts(without_properties(whole.slice(1, 3), ["UNIQ_KEY"])) == [{"b": "2"}, None, {"c": "3"}]
    assert values_of(whole.slice(1, 3), "UNIQ_KEY").to_pylist() == ["2", None, "4"]


def test_the_sharding_key_becomes_a_column_unless_there_is_one():
    keyed = rows({"__SHARDINGKEY": "s", "a": "1"}, {"a": "2"})
    given = rows({"__SHARDINGKEY": "s"}, {}, shardingKey=pa.array(["own", None]))

    assert copied_rows(keyed).column("shardingKey").to_pylist() == ["s", None]
    assert dicts(copied_rows(keyed).column("properties")) == [{"a": "1"}, {"a": "2"}]
    assert copied_rows(given).column("shardingKey").to_pylist() == ["own", None]


def test_stamps_are_copied_unless_there_are_new_ones():
    stamped = rows({STAMP: "q/0/0/0", HASH: "1", "a": "1"})

    assert dicts(copied_rows(stamped).column("properties")) == [{STAMP: "q/0/0/0", HASH: "1", "a": "1"}]
    assert dicts(copied_rows(stamped, new_stamps=True).column("properties")) == [{"a": "1"}]


def test_rows_without_properties_stay_as_they_are():
    batch = pa.record_batch({"body": pa.array([b"x"])})

    assert copied_rows(batch) is batch


class Route(Fake):
    """Says which queues a topic has."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def fetch_publish_queues(self, topic):
        self.asked.append(topic)
        return [MessageQueue(topic, "broker-a", number) for number in range(2)]


def queued(*places):
    topics, brokers, ids = zip(*places, strict=True)
    return pa.record_batch(
        {"topic": pa.array(topics), "brokerName": pa.array(brokers), "queueId": pa.array(ids, pa.int32())}
    )


def test_queues_that_are_there_pass_and_their_topic_is_asked_for_once():
    route, batches = Route(), [queued(("T", "broker-a", 0), ("T", "broker-a", 1)), queued(("T", None, None))]

    assert list(check_queues(batches, route, None)) == batches
    assert list(check_queues(batches, route, "U")) == batches
    assert route.asked == ["T", "U"]


def test_a_topic_that_cannot_be_is_left_to_the_check_of_rows():
    route, batch = Route(), queued(("no topic", "broker-a", 0), ("T", "broker-a", 1))

    assert list(check_queues([batch], route, None)) == [batch]
    assert route.asked == ["T"]


def test_a_queue_that_is_not_there_is_refused_before_its_batch_is_handed_on():
    handed_on = check_queues([queued(("T", "broker-a", 0), ("T", "broker-b", 5))], Route(), "U")

    with pytest.raises(
        ConfigError, match="option 'keepQueue': U/broker-b/5 does not exist among U/broker-a/0"
    ):
        next(handed_on)
