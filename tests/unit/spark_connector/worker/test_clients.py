"""One client per kind, configuration and process; closed when idle, dropped after an error."""

import pytest

from rmqtools import Client, ClientConfig, Producer, ProducerConfig
from rmqtools.errors import SendError
from spark_connector.worker import clients
from spark_connector.worker.clients import ClientCache, borrowed_client, borrowed_producer, client_of
from tests.support.cluster_scene import wait_until
from tests.support.forked import in_child

CONFIG = ClientConfig(name_server="127.0.0.1:9")
SENDING = ProducerConfig(name_server="127.0.0.1:9")


@pytest.fixture
def cache(clock):
    cache = ClientCache(idle_seconds=600, clock=clock)
    yield cache
    cache.close_all()


@pytest.fixture
def shared(cache, monkeypatch):
    monkeypatch.setattr(clients, "_CACHE", cache)
    return cache


def test_equal_configurations_share_a_client(shared):
    first = ClientConfig(name_server="127.0.0.1:9", broker_address_map={"10.0.0.1:1": "10.0.0.2:2"})
    equal = ClientConfig(name_server="127.0.0.1:9", broker_address_map={"10.0.0.1:1": "10.0.0.2:2"})

    assert client_of(first) is client_of(equal)


def test_configurations_that_differ_in_a_secret_do_not(shared):
    alice = ClientConfig(name_server="127.0.0.1:9", access_key="alice", secret_key="one")
    other = ClientConfig(name_server="127.0.0.1:9", access_key="alice", secret_key="two")

    assert client_of(alice) is not client_of(other)


def test_a_client_and_a_producer_of_one_configuration_are_two(cache):
    assert isinstance(cache.borrow(Client, SENDING), Client)
    assert isinstance(cache.borrow(Producer, SENDING), Producer)


def test_a_lent_one_is_there_for_the_next_who_asks(shared):
    with borrowed_producer(SENDING) as first:
        pass
    with borrowed_producer(SENDING) as second:
        pass

    assert first is second
    assert len(shared) == 1


def test_what_failed_is_closed_and_made_anew(shared):
    with pytest.raises(SendError), borrowed_producer(SENDING) as failed:
        raise SendError("no")
    with borrowed_producer(SENDING) as second:
        assert second is not failed

    assert not failed._producer._client.is_open


def test_a_generator_that_is_closed_early_is_no_failure(shared):
    def rows():
        with borrowed_client(CONFIG) as client:
            yield client

    reading = rows()
    client = next(reading)
    reading.close()

    assert client_of(CONFIG) is client


def test_idle_ones_are_closed_and_those_in_use_are_not(cache, clock):
    idle, used = cache.borrow(Client, CONFIG), cache.borrow(Producer, SENDING)
    cache.give_back(idle)
    clock.advance(599)
    cache.close_idle()
    assert len(cache) == 2

    clock.advance(1)
    cache.close_idle()

    assert len(cache) == 1
    assert not idle.asynchronous._client.is_open
    assert cache.borrow(Producer, SENDING) is used


def test_somebody_looks_for_idle_ones_without_being_asked(clock):
    cache = ClientCache(idle_seconds=0.02, clock=clock)
    client = cache.borrow(Client, CONFIG)
    cache.give_back(client)
    clock.advance(1)
    wait_until(lambda: not client.asynchronous._client.is_open)
    assert len(cache) == 0


def test_a_forked_process_makes_its_own(shared):
    inherited = client_of(CONFIG)

    def use_own() -> str:
        own = client_of(CONFIG)
        return "own" if own is not inherited and own.client_id != inherited.client_id else "shared"

    assert in_child(use_own) == "own"
    assert client_of(CONFIG) is inherited
