"""Brokers that producers shall not send to, and what waits on them."""

import pytest

from rmqtools import Message, MessageQueue, Perm, Producer, ProducerConfig
from rmqtools.broker import GroupBacklog
from rmqtools.errors import ConfigError, RemotingError
from rmqtools.testing import FakeCluster, Reaction, RequestCode

A, B = "broker-a", "broker-b"


@pytest.fixture
def cluster():
    with FakeCluster(brokers=(A, B), name_servers=2, delay_scale=1000) as cluster:
        cluster.create_topic("orders", queues=1)
        cluster.create_topic("archive", queues=1, perm=Perm.READ)
        yield cluster


def test_no_message_goes_to_a_broker_after_writing_is_forbidden_at_every_name_server(cluster, admin):
    admin.forbid_writing(B)

    with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        places = {producer.send(Message("orders", b"x")).queue.broker_name for _ in range(4)}

    assert len(cluster.requests(code=RequestCode.WIPE_WRITE_PERM_OF_BROKER)) == 2
    assert admin.fetch_read_only_brokers() == [B]
    assert places == {A}


def test_writing_is_forbidden_at_the_other_name_servers_where_one_does_not_answer(cluster, admin):
    cluster.fault(code=RequestCode.WIPE_WRITE_PERM_OF_BROKER, answer=Reaction.DISCONNECT)

    with pytest.raises(RemotingError, match=r"^1 of 2 name servers .* 127.0.0.1:\d+ .* repeat it"):
        admin.forbid_writing(B)

    assert len(cluster.requests(code=RequestCode.WIPE_WRITE_PERM_OF_BROKER)) == 2
    assert admin.fetch_read_only_brokers() == [B]


def test_writing_is_allowed_again_and_read_only_topics_stay_so(cluster, admin):
    admin.forbid_writing(B)
    admin.allow_writing(B)

    perms = {data.broker_name: data.perm for data in admin.fetch_route("archive").queue_datas}
    assert admin.fetch_read_only_brokers() == []
    assert perms == {A: Perm.READ, B: Perm.READ}


def test_a_broker_with_a_permission_of_its_own_is_read_only_too(cluster, admin):
    admin.update_broker_config(cluster.addr(A), {"brokerPermission": "4"})
    assert admin.fetch_read_only_brokers() == [A]

    admin.allow_writing(A)
    assert admin.fetch_read_only_brokers() == []


def test_a_changed_topic_ends_what_was_forbidden(cluster, admin):
    admin.forbid_writing(B)
    admin.create_topic("another", broker_names=[B])

    assert admin.fetch_read_only_brokers() == []


@pytest.mark.parametrize("ask", ["forbid_writing", "allow_writing"])
def test_an_unknown_broker_is_refused_with_a_similar_name(admin, ask):
    with pytest.raises(ConfigError, match=r"unknown broker 'broker-c' \(did you mean 'broker-[ab]'"):
        getattr(admin, ask)("broker-c")


def test_what_waits_on_a_broker_is_counted_there_only(cluster, admin):
    cluster.create_group("billing")
    for broker, count in ((A, 5), (B, 3)):
        queue = MessageQueue("orders", broker, 0)
        cluster.store("orders", *[b"x"] * count, queue=queue)
        cluster.commit("billing", queue, 1)
    with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        producer.send(Message("orders", b"later", delay_level=1), queue=MessageQueue("orders", B, 0))

    waits = [admin.fetch_broker_backlog(name, topics=["orders"], groups=["billing"]) for name in (A, B)]

    assert [one.ends for one in waits] == [{"orders": 5}, {"orders": 3}]
    assert [one.groups["billing"] for one in waits] == [
        GroupBacklog(lag=4, members=0),
        GroupBacklog(lag=2, members=0),
    ]
    assert [one.delayed for one in waits] == [0, 1]
