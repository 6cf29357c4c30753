"""A streaming query's requests, on the cluster in this process."""

import json

import pytest

from rmqtools import Message, MessageQueue, Producer, ProducerConfig
from rmqtools.errors import ConfigError
from rmqtools.testing import FakeCluster
from spark_connector.read.bounds import Ends
from spark_connector.read.stream_lookup import StreamLookup
from spark_connector.worker import clients
from tests.support.spark_options import stream_of

LONG_AGO = 1_700_000_000_000


def stream_ending_at(cluster, times) -> StreamLookup:
    ends = json.dumps({"T": {"broker-a": times}})
    return StreamLookup(stream_of(nameServer=cluster.name_server, endingOffsetsByTimestamp=ends))


@pytest.fixture
def two_queues(cluster):
    """The cluster, with a message in both queues of topic T."""
    cluster.create_topic("T", queues=2)
    with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        for queue in producer.fetch_publish_queues("T"):
            producer.send(Message("T", b"x"), queue=queue)
    return cluster


def test_a_queue_left_out_of_the_ending_times_is_refused(two_queues):
    lookup = stream_ending_at(two_queues, {"0": LONG_AGO})

    with pytest.raises(ConfigError, match=r"option 'endingOffsetsByTimestamp': T/broker-a/1 is left out"):
        lookup.fetch_ends(lookup.fetch_stored(must_exist=True))


def test_a_queue_that_appears_while_a_query_runs_needs_no_ending_time(two_queues):
    lookup = stream_ending_at(two_queues, {"0": 2 * LONG_AGO, "1": 2 * LONG_AGO})
    before = lookup.fetch_ends(lookup.fetch_stored(must_exist=True))
    two_queues.create_topic("T", queues=3)
    stored = lookup.fetch_stored(must_exist=False)

    assert len(stored.latest) == 3
    assert lookup.fetch_ends(stored) == before


def test_a_queue_of_the_ending_offsets_that_is_missing_is_awaited_and_logged_once(two_queues, caplog):
    ends = json.dumps({"T": {"broker-a": {"0": 1, "1": 1, "2": 5, "3": -1}}})
    lookup = StreamLookup(stream_of(nameServer=two_queues.name_server, endingOffsets=ends))
    found = [lookup.fetch_ends(lookup.fetch_stored(must_exist=True)) for _ in range(2)]

    offsets = {MessageQueue("T", "broker-a", number): at for number, at in enumerate((1, 1, 5, 0))}
    assert found == [Ends(offsets, is_final=True)] * 2
    assert [line for line in caplog.messages if "queue_awaited" in line] == [
        "queue_awaited queue='T/broker-a/2' end=5"
    ]


def test_the_end_by_a_group_is_open_while_there_is_no_topic(cluster):
    given = {"endingOffsets": "group", "group": "g", "groupOffsetFallback": "latest", "mustExist": "false"}
    lookup = StreamLookup(stream_of(nameServer=cluster.name_server, **given))
    assert lookup.fetch_ends(lookup.fetch_stored(must_exist=True)) == Ends({}, is_final=False)
    cluster.create_topic("T", queues=1)
    cluster.store("T", b"x", queue=(queue := MessageQueue("T", "broker-a", 0)))

    assert lookup.fetch_ends(lookup.fetch_stored(must_exist=False)) == Ends({queue: 1}, is_final=True)


def test_a_queue_that_is_missing_when_the_ending_time_has_passed_gets_its_end_once_it_is_back():
    with FakeCluster(brokers=("broker-a", "broker-b"), auto_create_topics=False) as cluster:
        cluster.create_topic("T", queues=1)
        one, other = (MessageQueue("T", name, 0) for name in ("broker-a", "broker-b"))
        for queue in (one, other):
            cluster.store("T", b"before", queue=queue, store_timestamp_ms=LONG_AGO)
            cluster.store("T", b"after", queue=queue, store_timestamp_ms=LONG_AGO + 2)
        lookup = StreamLookup(stream_of(nameServer=cluster.name_server, endingTimestamp=LONG_AGO + 1))
        cluster.stop("broker-b", in_route=False)

        assert lookup.fetch_ends(lookup.fetch_stored(must_exist=False)) == Ends({one: 1}, is_final=True)
        cluster.restart("broker-b")
        stored = lookup.fetch_stored(must_exist=False)

        assert lookup.fetch_ends(stored) == Ends({one: 1, other: 1}, is_final=True)
        clients._CACHE.close_all()
