"""Metrics of the cluster in this process, as Prometheus gets them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.cli.exporter.metrics import ClusterCollector
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.group import Severity
from rmqtools.model.codes import RequestCode
from rmqtools.model.group import KVTable
from rmqtools.protocol.wire.bodies import format_body
from rmqtools.protocol.wire.command import response
from rmqtools.testing import NAME_SERVER, Reaction
from tests.unit.cli.top.scene import report

SHIPPED = Path(__file__).parents[4] / "examples" / "prometheus"
QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.fixture(autouse=True)
def shop(cluster):
    """A group that has consumed 1 of 3 messages, with a dead letter and one to retry."""
    retry = MessageQueue("%RETRY%billing", "broker-a", 0)
    for topic in ("orders", "%DLQ%billing", "%RETRY%billing"):
        cluster.create_topic(topic, queues=1)
    cluster.store("orders", b"1", b"2", b"3", queue=QUEUE)
    cluster.store("%DLQ%billing", b"x")
    cluster.store("%RETRY%billing", b"x", queue=retry)
    cluster.commit("billing", QUEUE, 1)
    cluster.commit("billing", retry, 0)
    return cluster


def partial_admin(*name_servers):
    config = ClientConfig(name_server=";".join(name_servers), request_timeout=5.0)
    return Admin(config, partial=True)


@pytest.fixture
def collector():
    return ClusterCollector()


@pytest.fixture
def value(collector):
    return value_of(collector)


def value_of(collector):
    """Return a function that gives the value of a metric."""
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
    nobody = value("rmqtools_group_findings", group="billing", finding="no_members", severity="warning")
    shop.add_member("billing", "10.0.0.1@x")
    collector.look(admin)

    assert nobody == 1
    assert value("rocketmq_group_count", group="billing") == 1
    assert value("rmqtools_group_findings", group="billing", finding="no_members", severity="warning") is None
    assert value("rmqtools_group_findings", group="billing", finding="member_silent", severity="warning") == 1


def test_what_cannot_be_looked_at_is_left_out_and_counted(shop, admin, collector, value):
    collector.look(admin)
    shop.fault(broker="broker-b", code=RequestCode.GET_TOPIC_STATS_INFO, times=None, answer=1)
    collector.look(admin)

    assert value("rocketmq_producer_offset", topic="orders", broker="broker-a") is None
    assert value("rmqtools_exporter_failures") == 2  # the topic, and the dead letters of the group
    assert value("rmqtools_exporter_up") == 1


def test_a_broker_that_does_not_answer_is_counted_and_hides_no_group(shop, collector, value):
    shop.fault(broker="broker-b", times=None, answer=Reaction.DISCONNECT)
    with partial_admin(shop.name_server) as admin:
        collector.look(admin)

    assert value("rocketmq_group_diff", group="billing", topic="orders") == 2
    assert (
        value("rmqtools_group_findings", group="billing", finding="broker_silent", severity="critical") == 1
    )
    assert value("rmqtools_exporter_failures") == 1


def test_an_age_that_could_not_be_read_is_left_out(shop, collector, value):
    shop.fault(broker="broker-a", code=RequestCode.PULL_MESSAGE, times=None, answer=Reaction.DISCONNECT)
    with Admin(ClientConfig(name_server=shop.name_server, request_timeout=0.5), partial=True) as admin:
        collector.look(admin)

    assert value("rocketmq_group_diff", group="billing", topic="orders") == 2
    assert value("rmqtools_group_oldest_message_age_seconds", group="billing", topic="orders") is None


def test_old_numbers_are_never_shown_as_new(shop, admin, collector, value):
    collector.look(admin)
    success = value("rmqtools_exporter_last_success_timestamp_seconds")
    shop.stop(NAME_SERVER)
    with Admin(ClientConfig(name_server=shop.name_server, request_timeout=0.2)) as refused:
        collector.look(refused)

    assert value("rmqtools_exporter_up") == 0
    assert value("rocketmq_group_diff", group="billing", topic="orders") is None
    assert value("rmqtools_exporter_last_success_timestamp_seconds") == success


def test_numbers_of_a_look_that_is_long_ago_are_no_longer_shown(admin, clock):
    collector = ClusterCollector(keep=60, clock=clock)
    value = value_of(collector)
    collector.look(admin)
    clock.advance(59)
    kept = value("rocketmq_group_count", group="billing")
    clock.advance(2)

    assert kept == 0
    assert value("rmqtools_exporter_up") == 0
    assert value("rocketmq_group_count", group="billing") is None
    assert value("rmqtools_exporter_last_success_timestamp_seconds") is not None


def test_a_look_begins_no_part_after_its_deadline_and_counts_those_left_out(admin):
    collector = ClusterCollector(deadline=0)
    collector.look(admin)
    value = value_of(collector)

    assert value("rmqtools_exporter_up") == 1
    assert value("rmqtools_exporter_failures") == 2  # a topic and a group
    assert value("rocketmq_group_count", group="billing") is None


def test_the_age_is_that_of_the_oldest_message_of_a_topic(shop, admin, collector, value):
    shop.store("orders", b"old", queue=QUEUE, store_timestamp_ms=SYSTEM_CLOCK.now_ms() - 90_000)
    shop.commit("billing", QUEUE, 3)
    collector.look(admin)
    old = value("rmqtools_group_oldest_message_age_seconds", group="billing", topic="orders")
    shop.commit("billing", QUEUE, 4)
    collector.look(admin)

    assert 90 <= old < 120
    assert value("rmqtools_group_oldest_message_age_seconds", group="billing", topic="orders") == 0


def test_a_restart_of_a_member_begins_no_new_series(shop, admin, collector, value):
    place = {"group": "billing", "topic": "orders", "broker": "broker-a", "queue": "0"}
    for process in ("4711#1", "4712#2"):
        shop.add_member("billing", f"10.0.0.1@{process}", report("orders", ("broker-a", 0)))
        collector.look(admin)
        owners = value("rmqtools_group_queue_owners", **place, machine="10.0.0.1")
        shop.remove_member("billing", f"10.0.0.1@{process}")
        assert owners == 1


def test_findings_of_servers_and_name_servers_are_there(shop, collector, value):
    with partial_admin("127.0.0.1:1", shop.name_server) as admin:
        collector.look(admin)

    silent = {"finding": "name_server_silent", "subject": "127.0.0.1:1", "severity": "warning"}
    assert value("rmqtools_name_server_up", nameServer=shop.name_server) == 1
    assert value("rmqtools_name_server_up", nameServer="127.0.0.1:1") == 0
    assert value("rmqtools_server_findings", **silent) == 1


def test_before_the_first_look_there_is_only_that_it_is_not_up(value):
    assert value("rmqtools_exporter_up") == 0
    assert value("rmqtools_exporter_last_success_timestamp_seconds") is None


def shipped_rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((SHIPPED / "rules.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> list[str]:
    """The expressions of the alerts and of the board that are shipped."""
    board = json.loads((SHIPPED / "dashboard.json").read_text())
    return [rule["expr"] for rule in shipped_rules()] + [
        target["expr"] for panel in board["panels"] for target in panel["targets"]
    ]


@pytest.fixture
def say(shop):
    """``say(table)``: set the runtime information that broker-a returns."""

    def say(table):
        answer = response(0, 0, body=format_body(KVTable(table=table)))
        shop.fault(code=RequestCode.GET_BROKER_RUNTIME_INFO, broker="broker-a", times=None, answer=answer)

    return say


@pytest.fixture
def labels(say, admin, collector):
    """The labels of each metric of a cluster, of which a broker's disk is nearly full."""
    say({"putTps": "1 1 1", "getTransferredTps": "1 1 1", "putLatency99": "1", "commitLogDiskRatio": "0.9"})
    collector.look(admin)
    return {
        family.name: {name for sample in family.samples for name in sample.labels}
        for family in collector.collect()
    }


def test_alerts_and_board_use_metrics_and_labels_that_there_are(labels):
    assert len(expressions()) > 20
    for text in expressions():
        used = re.findall(r"\b((?:rocketmq|rmqtools)_\w+)(?:\{([^}]*)\})?", text)
        wanted = {name for _, matchers in used for name in re.findall(r"(\w+)[!=]", matchers)}
        wanted |= {
            name for inner in re.findall(r"\b(?:by|on) \(([^)]*)\)", text) for name in inner.split(", ")
        }
        assert used
        for metric, _ in used:
            assert wanted <= labels[metric], text


def test_texts_of_alerts_use_labels_that_their_expressions_keep(labels):
    for rule in shipped_rules():
        kept = re.search(r"\bby \(([^)]*)\)", rule["expr"])
        metric = re.search(r"(?:rocketmq|rmqtools)_\w+", rule["expr"])
        assert metric is not None
        shown = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        assert shown <= (set(kept[1].split(", ")) if kept else labels[metric[0]]), rule["alert"]
        assert rule.get("labels", {}).get("severity") in {None, *Severity}
        assert "severity" in rule.get("labels", {}) or "severity" in (kept[1] if kept else "")


def test_brokers_tell_their_rates_latency_disk_and_waiting_requests(say, shop, admin, collector, value):
    say(
        {
            "putTps": "12.5 10 10",
            "getTransferredTps": "7.5 7 7",
            "putLatency99": "2",
            "commitLogDiskRatio": "0.25",
            "pageCacheLockTimeMills": "3",
            "sendThreadPoolQueueSize": "4",
        }
    )
    collector.look(admin)
    labels = {"cluster": "DefaultCluster", "broker": "broker-a", "brokerIP": shop.addr("broker-a")}

    names = {
        "rmqtools_broker_up": 1,
        "rocketmq_broker_tps": 12.5,
        "rocketmq_broker_qps": 7.5,
        "rocketmq_brokeruntime_put_latency_99": 2,
        "rocketmq_brokeruntime_commitlog_disk_ratio": 0.25,
        "rocketmq_brokeruntime_pagecache_lock_time_mills": 3,
        "rocketmq_brokeruntime_send_threadpool_queue_size": 4,
    }
    assert {name: value(name, **labels) for name in names} == names
    assert value("rmqtools_exporter_look_seconds") > 0
