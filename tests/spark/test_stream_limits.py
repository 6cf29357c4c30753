"""How large micro-batches are, in real queries."""

from tests.spark.streams import counts, fill, next_offsets, stored_places


def test_available_now_takes_limited_batches_in_proportion_and_starves_nobody(
    stream, make_topic, producer, admin
):
    topic = make_topic(queues=1)
    queues = admin.fetch_subscribe_queues(topic)
    fill(producer, admin, {queues[0]: 78, queues[1]: 2})
    query = stream(topic=topic, startingOffsets="earliest", maxOffsetsPerTrigger=30)

    ended = query.run()

    assert counts(ended) == [30, 30, 20]
    assert [next_offsets(planned, queues) for planned in query.planned()] == [[29, 1], [58, 2], [78, 2]]
    assert query.places() == stored_places(admin, topic)
