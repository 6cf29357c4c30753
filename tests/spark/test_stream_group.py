"""Telling a consumer group how far a query is."""

import uuid

import pytest

from tests.spark.streams import fill, next_offsets


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
