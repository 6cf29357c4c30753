"""The Java push consumer of our tests does what its head says; members of mixed groups are made of it."""

import uuid

import pytest

from rmqtools import Message
from tests.support.java_consumer import JavaConsumer

pytestmark = pytest.mark.broker


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:12]}"


def test_two_java_members_share_the_queues_and_one_takes_over_from_one_that_leaves(
    java_peer, local_cluster, admin, make_topic, group
):
    topic = make_topic()
    with JavaConsumer(java_peer, local_cluster.name_server, group, topic) as first:
        everything = first.await_assigned(8)
        with JavaConsumer(java_peer, local_cluster.name_server, group, topic) as second:
            halves = first.await_assigned(4), second.await_assigned(4)
            assert admin.fetch_consumer_ids(group) == sorted([first.client_id, second.client_id])
            second.stop()
        first.await_assigned(8)

    assert set.union(*halves) == everything == set(admin.fetch_subscribe_queues(topic))
    assert second.was_clean
    assert first.was_clean
    assert admin.fetch_consumer_connection(group).connection_set == ()


def test_a_java_member_says_what_it_consumed(java_peer, local_cluster, producer, make_topic, group):
    topic = make_topic()
    sent = [producer.send(Message(topic, bytes([number]))) for number in range(20)]
    with JavaConsumer(java_peer, local_cluster.name_server, group, topic, "--print", "--orderly") as member:
        consumed = member.await_messages(20)

    assert sorted(row["body"] for row in consumed) == [bytes([number]) for number in range(20)]
    assert {row["msgId"] for row in consumed} == {result.msg_id for result in sent}
