"""Single messages and their track, on the cluster in this process."""

import pytest

from rmqtools import Admin, ClientConfig, Message, MessageQueue, Producer, ProducerConfig
from rmqtools.errors import (
    BodyTooLargeError,
    BrokerError,
    ConfigError,
    MessageRejectedError,
    UnsupportedError,
)
from rmqtools.model.group_view import MessageTrack, TrackType
from rmqtools.testing import FakeCluster, RequestCode
from tests.support.behind_proxy import show_as_proxy

QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.fixture
def cluster():
    with FakeCluster() as cluster:
        cluster.create_topic("orders", queues=1)
        yield cluster


@pytest.fixture
def sent(cluster):
    with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        yield producer.send(Message("orders", b"body", tags="new", keys=["k1", "k2"]))


def test_a_message_is_found_by_each_of_its_names(admin, sent):
    by_id = admin.view_message(sent.offset_msg_id)
    by_key = admin.query_messages("orders", "k2")
    by_unique_key = admin.query_messages("orders", sent.msg_id, unique=True)

    assert [m.msg_id for m in (by_id, *by_key, *by_unique_key)] == [sent.msg_id] * 3
    assert (by_id.body, by_id.broker_name, by_id.queue_offset) == (b"body", "broker-a", 0)


def test_a_body_above_the_limit_is_not_decompressed_and_the_rest_of_its_message_is_there(cluster, sent):
    large = Message("orders", b"x" * 50_000, keys=["k2"])
    with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        offset_msg_id = producer.send(large).offset_msg_id

    with Admin(ClientConfig(name_server=cluster.name_server, max_decompressed_bytes=1000)) as admin:
        found = [admin.view_message(offset_msg_id), *admin.query_messages("orders", "k2")]

    assert [(one.queue_offset, one.broker_name) for one in found] == [(at, "broker-a") for at in (1, 0, 1)]
    assert found[1].body == b"body"
    for one in found[0], found[2]:
        with pytest.raises(BodyTooLargeError, match=r"offset 1 of .*orders.*max_decompressed_bytes=1000"):
            _ = one.body


def test_an_unknown_key_finds_nothing(admin, sent):
    assert admin.query_messages("orders", "k3") == []
    assert admin.query_messages("orders", "k1", end_ms=1) == []


def test_a_key_is_not_taken_for_a_unique_key(admin, sent):
    """Brokers have one index for both, by hash codes."""
    assert admin.query_messages("orders", "k1", unique=True) == []
    assert admin.query_messages("orders", sent.msg_id) == []


@pytest.mark.parametrize("text", ["", "xyz", "7F00000100002A9F"])
def test_what_is_no_offset_message_id_is_refused(admin, text):
    with pytest.raises(MessageRejectedError, match="want 32 or 56 hex digits; find a client's message id"):
        admin.view_message(text)


def test_a_place_without_a_message_is_the_brokers_error(admin, sent):
    nowhere = sent.offset_msg_id[:-4] + "FFFF"

    with pytest.raises(BrokerError, match="can not find message by the offset"):
        admin.view_message(nowhere)


@pytest.mark.parametrize(("offset", "track_type"), [(0, TrackType.NOT_CONSUME_YET), (1, TrackType.CONSUMED)])
def test_the_offset_of_a_group_tells_whether_it_has_consumed_a_message(
    cluster, admin, sent, offset, track_type
):
    cluster.commit("g", QUEUE, offset)

    assert admin.fetch_message_track(admin.view_message(sent.offset_msg_id)) == [
        MessageTrack(consumer_group="g", track_type=track_type, consumer_offset=offset, is_online=False)
    ]


def test_messages_are_not_looked_for_through_a_proxy(cluster, admin):
    show_as_proxy(cluster)

    with pytest.raises(UnsupportedError, match=r"single messages.*not served by the proxy"):
        admin.query_messages("orders", "k1")

    assert cluster.requests(code=RequestCode.QUERY_MESSAGE) == []


def stored(cluster, seconds, key):
    """A message with a key for each second, in the queue's order."""
    for second in seconds:
        cluster.store(
            "orders",
            b"x",
            properties={"KEYS": key},
            store_timestamp_ms=1_700_000_000_000 + int(second * 1000),
        )


def offsets(messages):
    return [message.queue_offset for message in messages]


def test_all_messages_with_a_key_are_found_page_by_page(cluster, admin):
    stored(cluster, [number // 50 + number % 50 / 100 for number in range(200)], "k1")

    assert offsets(admin.query_all_messages("orders", "k1")) == list(range(200))
    assert len(cluster.requests(code=RequestCode.QUERY_MESSAGE)) > 200 // 64


def test_times_bound_all_messages_with_a_key_to_the_millisecond(cluster, admin):
    stored(cluster, [0, 0.4, 0.5, 2.0, 2.1], "k1")
    times = {"begin_ms": 1_700_000_000_400, "end_ms": 1_700_000_002_000}

    assert offsets(admin.query_all_messages("orders", "k1", **times)) == [1, 2, 3]


@pytest.mark.parametrize(("unique", "most"), [(False, 64), (True, 32)])
def test_more_messages_in_a_second_than_a_broker_returns_are_an_error(cluster, admin, sent, unique, most):
    def store(count):
        for _ in range(count):
            properties = {"UNIQ_KEY": sent.msg_id} if unique else {"KEYS": "k9"}
            cluster.store("orders", b"x", properties=properties, store_timestamp_ms=7_000)

    key = sent.msg_id if unique else "k9"
    store(most - 1)
    assert len(admin.query_all_messages("orders", key, unique=unique, end_ms=8_000)) == most - 1
    store(1)

    with pytest.raises(ConfigError, match=f"more than {most} messages with this key in the second of 7000"):
        admin.query_all_messages("orders", key, unique=unique, end_ms=8_000)
