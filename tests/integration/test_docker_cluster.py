"""The Docker cluster is what the tests on it take it for."""

from contextlib import suppress

import pytest

from rmqtools import Admin, ClientConfig
from rmqtools.errors import RemotingConnectError, RemotingTimeoutError
from tests.support.cluster_scene import wait_until
from tests.support.docker_layout import BROKERS

pytestmark = pytest.mark.docker


@pytest.fixture
def registered(docker_cluster):
    def fetch():
        with Admin(ClientConfig(name_server=docker_cluster.name_server)) as admin:
            table = admin.fetch_cluster_info().broker_addr_table
        return {name: data.broker_addrs[0] for name, data in table.items()}

    return fetch


def test_three_masters_are_registered_at_addresses_of_this_checkout(docker_cluster, registered):
    assert registered() == docker_cluster.broker_addrs
    assert set(docker_cluster.broker_addrs) == set(BROKERS)


@pytest.mark.slow  # in every run: spark/test_write_faults.py
def test_a_killed_broker_leaves_the_route_and_comes_back_with_its_topics(
    faulty_cluster, registered, new_topic
):
    topic = new_topic()

    faulty_cluster.kill("broker-b")
    without = registered()
    faulty_cluster.start("broker-b")

    assert set(without) == {"broker-a", "broker-c"}
    assert registered() == faulty_cluster.broker_addrs
    with Admin(ClientConfig(name_server=faulty_cluster.name_server)) as admin:
        assert {queue.broker_name for queue in admin.fetch_publish_queues(topic)} == set(BROKERS)


def test_a_paused_broker_stays_registered_and_answers_again_when_it_goes_on(faulty_cluster, registered):
    addr = faulty_cluster.broker_addrs["broker-c"]
    with Admin(ClientConfig(name_server=faulty_cluster.name_server, request_timeout=1.0)) as admin:
        faulty_cluster.pause("broker-c")
        paused = registered()
        with pytest.raises(RemotingTimeoutError):
            admin.fetch_broker_runtime_info(addr)
        faulty_cluster.unpause("broker-c")

        def answers() -> bool:
            with suppress(RemotingTimeoutError):  # it reads the old requests first
                return bool(admin.fetch_broker_runtime_info(addr))
            return False

        wait_until(answers)
        assert paused == registered() == faulty_cluster.broker_addrs


@pytest.mark.slow  # a property of the servers
def test_a_restarted_name_server_knows_all_masters_again(faulty_cluster, registered):
    faulty_cluster.kill("namesrv")
    with pytest.raises(RemotingConnectError):
        registered()
    faulty_cluster.start("namesrv")

    assert registered() == faulty_cluster.broker_addrs
