"""Metrics of the cluster in this process, as Prometheus gets them."""

import pytest
from prometheus_client import CollectorRegistry

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.cli.exporter.metrics import ClusterCollector
from rmqtools.model.codes import RequestCode
from rmqtools.testing import NAME_SERVER, FakeCluster, Reaction

QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.fixture
def shop():
    """A group that has consumed 1 of 3 messages, with a dead letter and a member that does not answer."""
    with FakeCluster(brokers=("broker-a", "broker-b"), auto_create_topics=False) as shop:
        shop.create_topic("orders", queues=1)
        shop.create_topic("%DLQ%billing", queues=1)
        shop.create_topic("%RETRY%billing", queues=1)
        shop.store("orders", b"1", b"2", b"3", queue=QUEUE)
        shop.store("%DLQ%billing", b"x")
        shop.store("%RETRY%billing", b"x", queue=MessageQueue("%RETRY%billing", "broker-a", 0))
        shop.commit("billing", QUEUE, 1)
        shop.commit("billing", MessageQueue("%RETRY%billing", "broker-a", 0), 0)
        yield shop


@pytest.fixture
def admin(shop):
    with Admin(ClientConfig(name_server=shop.name_server, request_timeout=5.0)) as admin:
        yield admin


@pytest.fixture
def collector():
    return ClusterCollector()


@pytest.fixture
def value(collector):
    registry = CollectorRegistry()
    registry.register(collector)
    return lambda name, **labels: registry.get_sample_value(name, labels)


def test_lag_is_by_the_one_rule_and_retries_and_dead_letters_are_apart(admin, collector, value):
    collector.look(admin)
    place = {"group": "billing", "topic": "orders", "broker": "broker-a", "queue": "0"}

    assert value("rocketmq_group_diff", group="billing", topic="orders") == 2
    assert value("rocketmq_group_retrydiff", group="billing", topic="%RETRY%billing") == 1
    assert value("rocketmq_group_dlqdiff", group="billing", topic="%DLQ%billing") == 1
    assert value("rmqtools_group_queue_lag", **place) == 2
    assert value("rmqtools_group_queue_offset", **place) == 1
    assert value("rocketmq_producer_offset", topic="orders", broker="broker-a") == 3


def test_members_and_findings_are_counted(shop, admin, collector, value):
    collector.look(admin)
    nobody = value("rmqtools_group_findings", group="billing", finding="no_members")
    shop.add_member("billing", "10.0.0.1@x")
    collector.look(admin)

    assert nobody == 1
    assert value("rocketmq_group_count", group="billing") == 1
    assert value("rmqtools_group_findings", group="billing", finding="no_members") is None
    assert value("rmqtools_group_findings", group="billing", finding="member_silent") == 1


def test_what_cannot_be_looked_at_is_left_out_and_counted(shop, admin, collector, value):
    collector.look(admin)
    shop.fault(broker="broker-b", code=RequestCode.GET_TOPIC_STATS_INFO, times=None, answer=1)
    collector.look(admin)

    assert value("rocketmq_producer_offset", topic="orders", broker="broker-a") is None
    assert value("rmqtools_exporter_failures") == 2  # the topic, and the dead letters of the group
    assert value("rmqtools_exporter_up") == 1


def test_a_broker_that_does_not_answer_is_counted_and_hides_no_group(shop, collector, value):
    shop.fault(broker="broker-b", times=None, answer=Reaction.DISCONNECT)
    with Admin(ClientConfig(name_server=shop.name_server, request_timeout=5.0), partial=True) as admin:
        collector.look(admin)

    assert value("rocketmq_group_diff", group="billing", topic="orders") == 2
    assert value("rmqtools_group_findings", group="billing", finding="broker_silent") == 1
    assert value("rmqtools_exporter_failures") == 1


def test_old_numbers_are_never_shown_as_new(shop, admin, collector, value):
    collector.look(admin)
    success = value("rmqtools_exporter_last_success_timestamp_seconds")
    shop.stop(NAME_SERVER)
    collector.look(admin)

    assert value("rmqtools_exporter_up") == 0
    assert value("rocketmq_group_diff", group="billing", topic="orders") is None
    assert value("rmqtools_exporter_last_success_timestamp_seconds") == success


def test_before_the_first_look_there_is_only_that_it_is_not_up(value):
    assert value("rmqtools_exporter_up") == 0
    assert value("rmqtools_exporter_last_success_timestamp_seconds") is None
