"""One client per configuration and process."""

import os

import pytest

from rmqtools import ClientConfig
from spark_connector import clients
from spark_connector.clients import client_of


@pytest.fixture(autouse=True)
def _closed_afterwards(monkeypatch):
    made = []
    monkeypatch.setattr(clients, "_clients", made)
    yield
    for owner, _, client in made:
        if owner == os.getpid():
            client.close()


def test_equal_configurations_share_a_client():
    first = ClientConfig(name_server="127.0.0.1:9", broker_address_map={"10.0.0.1:1": "10.0.0.2:2"})
    equal = ClientConfig(name_server="127.0.0.1:9", broker_address_map={"10.0.0.1:1": "10.0.0.2:2"})

    assert client_of(first) is client_of(equal)


def test_configurations_that_differ_in_a_secret_do_not():
    alice = ClientConfig(name_server="127.0.0.1:9", access_key="alice", secret_key="one")
    other = ClientConfig(name_server="127.0.0.1:9", access_key="alice", secret_key="two")

    assert client_of(alice) is not client_of(other)


@pytest.mark.filterwarnings(
    "ignore:.*fork.*:DeprecationWarning"
)  # Python 3.12: our threads do not matter here
def test_a_forked_process_makes_its_own():
    config = ClientConfig(name_server="127.0.0.1:9")
    inherited = client_of(config)
    reader, writer = os.pipe()

    child = os.fork()
    if child == 0:  # pragma: no cover  # in the child
        own = client_of(config)
        os.write(
            writer, b"own" if own is not inherited and own.client_id != inherited.client_id else b"shared"
        )
        os._exit(0)
    os.waitpid(child, 0)

    assert os.read(reader, 100) == b"own"
