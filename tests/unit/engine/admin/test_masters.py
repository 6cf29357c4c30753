"""Brokers that do not answer: an error, or left out and named."""

import re
from contextlib import nullcontext

import pytest

from rmqtools import Admin, ClientConfig, MessageQueue, aio
from rmqtools.errors import (
    BrokerError,
    ConnectionLostError,
    RemotingError,
    RemotingTimeoutError,
    RocketMQError,
)
from rmqtools.group import FindingKind
from rmqtools.testing import FakeCluster, Reaction, RequestCode, ResponseCode

A, B = "broker-a", "broker-b"
QUEUES = [MessageQueue("orders", broker, 0) for broker in (A, B)]


def filled() -> FakeCluster:
    """A cluster to be opened; each broker has a queue, of which the group has consumed one message."""
    cluster = FakeCluster(brokers=(A, B), auto_create_topics=False)
    cluster.create_topic("orders", queues=1)
    cluster.create_group("billing")
    for queue in QUEUES:
        cluster.store("orders", b"1", b"2", queue=queue)
        cluster.commit("billing", queue, 1)
    return cluster


@pytest.fixture
def cluster():
    with filled() as cluster:
        yield cluster


@pytest.fixture
def admin(cluster):
    with Admin(ClientConfig(name_server=cluster.name_server), partial=True) as admin:
        yield admin


def cut_off(cluster, *brokers):
    """Let brokers break each connection on which a request comes."""
    return [cluster.fault(broker=name, times=None, answer=Reaction.DISCONNECT) for name in brokers]


@pytest.mark.parametrize(
    ("ask", "shown", "expected"),
    [
        (lambda admin: admin.fetch_group_list(), list, ["billing"]),
        (lambda admin: admin.fetch_group_configs("billing"), list, [A]),
        (lambda admin: admin.fetch_topic_groups("orders"), list, ["billing"]),
        (lambda admin: admin.fetch_topic_configs("orders"), list, [A]),
        (lambda admin: admin.fetch_topic_stats("orders"), lambda stats: [*stats.offset_table], QUEUES[:1]),
        (lambda admin: admin.fetch_progress("billing"), list, QUEUES[:1]),
        (lambda admin: admin.fetch_consumer_offsets("billing", "orders"), dict, {QUEUES[0]: 1}),
        (lambda admin: admin.fetch_consumer_ids("billing"), list, []),
        (lambda admin: admin.fetch_group("billing"), lambda group: [*group.progress], QUEUES[:1]),
    ],
    ids=["groups", "settings", "topic-groups", "topic", "stats", "progress", "offsets", "ids", "group"],
)
async def test_the_rest_is_returned_and_the_broker_without_an_answer_is_named(ask, shown, expected):
    async with (
        filled() as cluster,
        aio.Admin(ClientConfig(name_server=cluster.name_server), partial=True) as admin,
    ):
        cut_off(cluster, B)

        assert shown(await ask(admin)) == expected
        assert list(admin.missing_brokers) == [B]
        assert isinstance(admin.missing_brokers[B], ConnectionLostError)


def test_a_missing_broker_gets_no_second_request(cluster, admin):
    (fault,) = cut_off(cluster, B)

    admin.fetch_group_list()
    admin.fetch_group("billing")

    assert fault.fired() == 1


def test_another_one_on_the_same_client_asks_again(cluster, admin):
    (fault,) = cut_off(cluster, B)
    admin.fetch_group_list()
    fault.remove()

    with Admin(ClientConfig(name_server=cluster.name_server), partial=True) as again:
        assert [*again.fetch_progress("billing")] == QUEUES
        assert again.missing_brokers == {}


async def test_the_error_of_a_hung_broker_has_its_address_and_the_name_of_the_request():
    async with (
        filled() as hung,
        aio.Admin(ClientConfig(name_server=hung.name_server), partial=True) as admin,
    ):
        hung.fault(broker=B, times=None, answer=Reaction.SILENCE)
        names = await admin.fetch_group_list()
        error = admin.missing_brokers[B]

    assert names == ["billing"]
    assert isinstance(error, RemotingTimeoutError)
    assert str(error).startswith(f"{hung.addr(B)} did not answer GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201)")


def test_without_any_answer_the_error_is_raised(cluster, admin):
    cut_off(cluster, A, B)

    with pytest.raises(RemotingError):
        admin.fetch_group_list()


def test_without_partial_the_first_error_is_raised(cluster):
    cut_off(cluster, B)

    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        with pytest.raises(ConnectionLostError):
            admin.fetch_group_list()
        assert admin.missing_brokers == {}


def test_a_change_that_does_not_reach_every_broker_is_an_error(cluster, admin):
    cluster.fault(code=RequestCode.DELETE_SUBSCRIPTIONGROUP, broker=B, answer=Reaction.DISCONNECT)

    with pytest.raises(ConnectionLostError):
        admin.delete_group("billing")


def test_a_silent_broker_is_a_finding_of_its_groups(cluster, admin):
    cut_off(cluster, B)

    found = admin.check_group("billing").findings

    assert [one.kind for one in found] == [FindingKind.BROKER_SILENT, FindingKind.NO_MEMBERS]
    assert "broker broker-b does not answer, so nothing is known of its queues: " in found[0].text


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (
            {"broker_names": [A, "broker-z"]},
            "no name server knows a master of brokers ['broker-z'] (known: broker-a, broker-b; asked: ",
        ),
        (
            {"cluster_name": "nosuch"},
            "no name server knows cluster 'nosuch' (known: DefaultCluster; asked: ",
        ),
    ],
    ids=["broker", "cluster"],
)
def test_a_change_for_an_unknown_place_names_it_and_the_known_ones(cluster, admin, where, text):
    with pytest.raises(RocketMQError, match=re.escape(text + cluster.name_server)):
        admin.create_topic("new", **where)

    assert cluster.requests(code=RequestCode.UPDATE_AND_CREATE_TOPIC) == []


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (ResponseCode.SYSTEM_ERROR, pytest.raises(BrokerError)),
        (ResponseCode.CONSUMER_NOT_ONLINE, nullcontext()),  # brokers before 5.x: the offset is written then
    ],
    ids=["refused", "nobody is online"],
)
def test_an_offset_is_reset_also_where_the_broker_says_that_no_member_is_online(
    cluster, admin, code, outcome
):
    cluster.fault(code=RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, times=None, answer=code)
    with outcome:
        admin.reset_offsets("billing", "orders", 0)

    written = 1 if code == ResponseCode.SYSTEM_ERROR else 0
    assert [cluster.committed("billing", queue) for queue in QUEUES] == [written, written]
