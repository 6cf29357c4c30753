"""Telling a consumer group how far a query is."""

import uuid

import pytest

from tests.spark.streams import error_of, fill, next_offsets
from tests.support.java_consumer import JavaConsumer

pytestmark = [pytest.mark.spark, pytest.mark.broker]


@pytest.fixture
def group():
    return f"group-{uuid.uuid4().hex}"


def test_a_group_that_is_made_for_it_gets_the_next_offsets_to_read(
    stream, make_topic, producer, admin, group
):
    topic = make_topic(queues=1)
    queues = admin.fetch_subscribe_queues(topic)
    fill(producer, admin, {queues[0]: 7, queues[1]: 2})
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 5}
    query = stream(topic=topic, group=group, commitOffsetsToGroup="true", **options)

    query.run()

    assert [admin.fetch_consumer_offsets(group, topic)[queue] for queue in queues] == [7, 2]
    assert next_offsets(query.planned()[-1], queues) == [7, 2]


def test_without_the_option_a_group_is_left_alone(stream, make_topic, producer, admin, group):
    topic = make_topic(queues=1)
    queues = admin.fetch_subscribe_queues(topic)
    fill(producer, admin, dict.fromkeys(queues, 2))

    stream(topic=topic, group=group, startingOffsets="earliest").run()

    assert set(admin.fetch_consumer_offsets(group, topic).values()) == {None}


def test_a_group_with_a_live_member_is_refused(stream, make_topic, admin, group, java_peer, local_cluster):
    topic = make_topic(queues=1)
    query = stream(topic=topic, group=group, commitOffsetsToGroup="true")

    with JavaConsumer(java_peer, local_cluster.name_server, group, topic) as member:
        member.await_assigned(2)
        text = error_of(query.run)

    assert f"option 'group' = '{group}'" in text
    assert "live members" in text
    assert member.client_id in text
