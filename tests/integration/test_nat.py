"""Brokers that advertise an address on which nothing listens, as behind NAT, in Docker or in Kubernetes."""

import uuid

import pytest

from rmqtools import (
    Admin,
    Client,
    ClientConfig,
    ConsumeFromWhere,
    Message,
    Producer,
    ProducerConfig,
    PushConsumer,
    PushConsumerConfig,
    QueueRange,
)
from rmqtools.cluster import LocalCluster
from rmqtools.errors import SendError
from tests.support.listening import Heard, new_group, numbers
from tests.support.patience import PATIENT_WRITE
from tests.support.reading import await_readable

pytestmark = pytest.mark.broker

NOWHERE = "127.9.9.9"
MAP = {f"{NOWHERE}:*": "127.0.0.1:*"}


@pytest.fixture(scope="module")
def nat_cluster():
    with LocalCluster(broker_settings={"brokerIP1": NOWHERE, "brokerIP2": NOWHERE}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def nat_config(nat_cluster):
    return ClientConfig(name_server=nat_cluster.name_server, broker_address_map=MAP)


@pytest.fixture
def filled(nat_cluster, nat_config):
    """A topic of one queue with ten messages, sent through the map."""
    topic = f"test-{uuid.uuid4().hex[:12]}"
    producing = ProducerConfig(name_server=nat_cluster.name_server, group="nat", broker_address_map=MAP)
    with Admin(nat_config) as admin, Producer(producing) as producer:
        admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
        await_readable(admin, producer.send_many([Message(topic, body) for body in numbers(10)]))
    return topic


def advertised(cluster):
    """The broker's address as routes give it."""
    return cluster.broker_addrs["broker-a"].replace("127.0.0.1", NOWHERE)


def test_the_brokers_advertise_the_address_that_leads_nowhere(nat_cluster, nat_config):
    with Admin(nat_config) as admin:
        (broker,) = admin.fetch_cluster_info().broker_addr_table.values()

    assert broker.broker_addrs[0] == advertised(nat_cluster)


def test_a_client_reads_through_the_map_what_it_sent_through_it(nat_config, filled):
    with Client(nat_config) as client, Admin(client) as admin:
        (queue,) = admin.fetch_subscribe_queues(filled)
        messages = client.read_messages(QueueRange(queue, admin.min_offset(queue), admin.max_offset(queue)))
        bodies = [message.body for batch in messages for message in batch]

    assert bodies == numbers(10)


def test_a_push_consumer_is_reached_through_the_map(nat_cluster, filled):
    heard = Heard()
    config = PushConsumerConfig(
        name_server=nat_cluster.name_server,
        group=new_group(),
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        broker_address_map=lambda addr: addr.replace(NOWHERE, "127.0.0.1"),
    )
    consumer = PushConsumer(config)
    consumer.subscribe(filled, heard)
    with consumer:
        heard.wait(10)

    assert sorted(heard.bodies) == numbers(10)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        pytest.param({}, "set broker_address_map, e.g. {{'{addr}': 'host:port'}}", id="no-map"),
        pytest.param(
            {f"{NOWHERE}:*": "127.8.8.8:*"},
            "the route gave {addr}, broker_address_map made it 127.8.8.8:{port}: correct that rule",
            id="wrong-map",
        ),
    ],
)
def test_without_the_right_map_the_error_names_the_addresses_and_the_option(
    nat_cluster, filled, rules, words
):
    addr = advertised(nat_cluster)
    config = ProducerConfig(name_server=nat_cluster.name_server, group="nat", broker_address_map=rules)
    with Producer(config) as producer, pytest.raises(SendError) as caught:
        producer.send(Message(filled, b"lost"))

    assert words.format(addr=addr, port=addr.rpartition(":")[2]) in str(caught.value)


@pytest.mark.spark
@pytest.mark.slow  # clients go through the same map
def test_executors_of_spark_write_and_read_through_the_map(spark, nat_cluster, filled):
    options = {
        "nameServer": nat_cluster.name_server,
        "topic": filled,
        "brokerAddressMap": f"{NOWHERE}:*=127.0.0.1:*",
    }
    frame = spark.createDataFrame([(b"10",), (b"11",)], "body binary")
    frame.write.format("rocketmq").options(**PATIENT_WRITE, **options).mode("append").save()

    rows = spark.read.format("rocketmq").options(**options).load().select("body").collect()

    assert sorted(bytes(row.body) for row in rows) == sorted(numbers(12))
