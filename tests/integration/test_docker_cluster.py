"""The Docker cluster is what the tests on it take it for."""

from contextlib import suppress

import pytest

from rmqtools import Admin, ClientConfig
from rmqtools.errors import RemotingTimeoutError
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
