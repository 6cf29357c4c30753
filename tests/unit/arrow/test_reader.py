"""A topic as a reader of record batches."""

import pyarrow as pa
import pytest

from rmqtools import Client, ClientConfig, MessageQueue, QueueRange
from rmqtools.arrow import MESSAGE_SCHEMA, reader
from rmqtools.errors import ConfigError, DataLossError, TopicNotFoundError
from rmqtools.testing import FakeCluster


@pytest.fixture(scope="module")
def client():
    """A client of a cluster with a topic of two queues, with three messages each."""
    with FakeCluster() as cluster:
        cluster.create_topic("orders", queues=2)
        cluster.create_topic("empty", queues=2)
        for queue_id in range(2):
            queue = MessageQueue("orders", "broker-a", queue_id)
            for number in range(3):
                cluster.store("orders", b"%d-%d" % (queue_id, number), queue=queue, tags=f"t{number}")
        with Client(ClientConfig(name_server=cluster.name_server)) as client:
            yield client


def test_a_topic_gives_every_message_of_all_its_queues(client):
    table = reader(client, "orders").read_all()

    assert table.schema == MESSAGE_SCHEMA
    assert sorted(table["body"].to_pylist()) == [b"0-0", b"0-1", b"0-2", b"1-0", b"1-1", b"1-2"]


def test_columns_and_tags_choose(client):
    table = reader(client, "orders", columns=["tags", "queueOffset"], tags=["t1"]).read_all()

    assert table.to_pylist() == [{"tags": "t1", "queueOffset": 1}] * 2


def test_ranges_give_their_messages_only(client):
    queue = MessageQueue("orders", "broker-a", 1)

    table = reader(client, [QueueRange(queue, 1, 3)], columns=["body"]).read_all()

    assert table["body"].to_pylist() == [b"1-1", b"1-2"]


def test_an_empty_topic_is_an_empty_table_with_the_columns(client):
    assert (
        reader(client, "empty", columns=["body"]).read_all()
        == pa.schema([MESSAGE_SCHEMA.field("body")]).empty_table()
    )


def test_a_missing_topic_and_an_unknown_column_are_refused_at_once(client):
    with pytest.raises(TopicNotFoundError, match="'nothing'"):
        reader(client, "nothing")
    with pytest.raises(ConfigError, match="did you mean 'tags'"):
        reader(client, "orders", columns=["tag"])


@pytest.mark.process  # it asks for three seconds
def test_what_is_missing_is_an_error_while_batches_are_taken(client):
    queue = MessageQueue("orders", "broker-a", 1)

    with pytest.raises(DataLossError):
        reader(client, [QueueRange(queue, 0, 9)]).read_all()
