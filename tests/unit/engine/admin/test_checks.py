"""Findings of groups on a cluster in this process: what is healthy is not reported."""

import pytest

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.model.group import SubscriptionData
from rmqtools.model.running_info import ConsumerRunningInfo, PopProcessQueueInfo
from rmqtools.testing import FakeCluster

FIRST, SECOND = (MessageQueue("orders", "broker-a", number) for number in range(2))
SUBSCRIBED = (SubscriptionData(topic="orders"),)


@pytest.fixture
def cluster():
    with FakeCluster(auto_create_topics=False) as cluster:
        cluster.create_topic("orders", queues=2)
        cluster.create_group("billing")
        for queue in (FIRST, SECOND):
            cluster.store("orders", b"x", queue=queue)
            cluster.commit("billing", queue, 1)
        yield cluster


@pytest.fixture
def admin(cluster):
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        yield admin


def test_members_that_pop_all_queues_of_a_broker_own_each_of_them(cluster, admin):
    everything = MessageQueue("orders", "broker-a", -1)
    for client_id in ("10.0.0.1@one", "10.0.0.2@two"):
        told = ConsumerRunningInfo(
            subscription_set=SUBSCRIBED, mq_pop_table={everything: PopProcessQueueInfo()}
        )
        cluster.add_member("billing", client_id, told)

    check = admin.check_group("billing")

    assert check.findings == ()
    assert check.view.owners(FIRST) == check.view.owners(SECOND) == ["10.0.0.1@one", "10.0.0.2@two"]
