"""Brokers that advertise an address on which nothing listens, as behind NAT, in Docker or in Kubernetes."""

import pytest

from rmqtools import Admin, ClientConfig
from tests.support.listening import numbers
from tests.support.patience import PATIENT_WRITE
from tests.support.resting import RestingCluster

pytestmark = pytest.mark.broker

NOWHERE = "127.9.9.9"


@pytest.fixture(scope="module")
def nat_cluster():
    with RestingCluster(broker_settings={"brokerIP1": NOWHERE, "brokerIP2": NOWHERE}) as cluster:
        yield cluster


@pytest.mark.spark
@pytest.mark.slow  # in every run, with a scripted broker: unit/engine/connection/test_remoting_behind_nat.py
def test_executors_of_spark_write_and_read_through_the_map(spark, nat_cluster):
    address_map = {f"{NOWHERE}:*": "127.0.0.1:*"}
    with Admin(ClientConfig(name_server=nat_cluster.name_server, broker_address_map=address_map)) as admin:
        admin.create_topic("mapped", read_queue_nums=1, write_queue_nums=1)
        (broker,) = admin.fetch_cluster_info().broker_addr_table.values()
    options = {
        "nameServer": nat_cluster.name_server,
        "topic": "mapped",
        "brokerAddressMap": f"{NOWHERE}:*=127.0.0.1:*",
    }
    frame = spark.createDataFrame([(body,) for body in numbers(12)], "body binary")
    frame.write.format("rocketmq").options(**PATIENT_WRITE, **options).mode("append").save()

    rows = spark.read.format("rocketmq").options(**options).load().select("body").collect()

    assert broker.broker_addrs[0].startswith(f"{NOWHERE}:")
    assert sorted(bytes(row.body) for row in rows) == sorted(numbers(12))
