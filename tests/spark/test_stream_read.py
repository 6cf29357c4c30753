"""Streaming reads: their starts, limits and restarts, topics that come later, and the offsets of a group."""

import re
import uuid
from collections import Counter

from rmqtools.clock import SYSTEM_CLOCK
from tests.spark.streams import await_true, counts, error_of, fill, next_offsets, stored_places
from tests.support.patience import PATIENCE


def bodies(stream) -> Counter[bytes]:
    return Counter(bytes(row.body) for row in stream.rows())


def crash_in_first_batch(query) -> None:
    def crash(frame, batch_id):
        raise RuntimeError("crash in the first batch")

    sink = query.load().writeStream.foreachBatch(crash)
    started = sink.option("checkpointLocation", str(query.checkpoint)).start()
    assert "crash in the first batch" in error_of(lambda: started.awaitTermination(PATIENCE))


def test_every_message_comes_once_over_restarts(stream, make_topic, producer, admin):
    topic = make_topic(queues=2)
    queues = admin.fetch_subscribe_queues(topic)
    query = stream(topic=topic, startingOffsets="earliest", maxOffsetsPerTrigger=50)
    for _ in range(2):
        fill(producer, admin, dict.fromkeys(queues, 25))
        query.run()

    assert query.places() == stored_places(admin, topic)
    assert len(query.rows()) == 200


def test_a_first_batch_that_crashed_is_run_again_from_where_it_began(stream, make_topic, producer, admin):
    """Spark does not store where batch 0 starts, and asks a new process: the group has moved on since."""
    topic, group = make_topic(queues=1), f"group-{uuid.uuid4().hex}"
    queues = admin.fetch_subscribe_queues(topic)
    fill(producer, admin, dict.fromkeys(queues, 10))
    for queue in queues:
        admin.update_consumer_offset(group, queue, 4)
    query = stream(topic=topic, startingOffsets="group", group=group)

    crash_in_first_batch(query)
    for queue in queues:
        admin.update_consumer_offset(group, queue, 9)
    fill(producer, admin, dict.fromkeys(queues, 5))
    query.run()

    assert query.places() == Counter({place: 1 for place in stored_places(admin, topic) if place[3] >= 4})


def test_a_running_query_gets_what_is_sent_and_limits_are_for_triggers_that_have_them(
    stream, make_topic, producer, admin
):
    topic = make_topic(queues=1)
    queues = admin.fetch_subscribe_queues(topic)
    fill(producer, admin, dict.fromkeys(queues, 30))
    limited = stream(topic=topic, startingOffsets="earliest", maxOffsetsPerTrigger=7)

    once = limited.run(once=True)
    assert counts(once) == [60]  # Trigger.Once means everything

    running = limited.start(processingTime="100 milliseconds")
    fill(producer, admin, dict.fromkeys(queues, 7))
    await_true(lambda: sum(counts(running)) == 14, "all messages read")
    running.stop()

    assert max(counts(running)) <= 7
    assert limited.places() == stored_places(admin, topic)


def test_a_time_bounds_the_start(stream, make_topic, producer, admin):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    (queue,) = admin.fetch_subscribe_queues(topic)
    fill(producer, admin, {queue: 2}, body=b"before")
    time = SYSTEM_CLOCK.now_ms() + 2
    await_true(lambda: SYSTEM_CLOCK.now_ms() > time, "a later time")
    fill(producer, admin, {queue: 3}, body=b"after")

    query = stream(topic=topic, startingTimestamp=time)
    query.run()

    assert bodies(query) == {b"after": 3}


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


def test_new_queues_brokers_and_topics_are_read_from_their_beginning(stream, make_topic, producer, admin):
    topic = make_topic(queues=1, broker_names=["broker-a"])
    query = stream(topicPattern=f"{re.escape(topic)}.*", pollInterval="50ms")
    running = query.start()

    admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2, broker_names=["broker-a"])
    admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1, broker_names=["broker-b"])
    admin.create_topic(f"{topic}-new", read_queue_nums=1, write_queue_nums=1)
    queues = admin.fetch_subscribe_queues(topic) + admin.fetch_subscribe_queues(f"{topic}-new")
    fill(producer, admin, dict.fromkeys(queues, 3))

    expected = stored_places(admin, topic, f"{topic}-new")
    assert len(expected) == 15
    await_true(lambda: query.is_written() and len(query.rows()) >= 15, "all messages read")
    running.stop()
    assert query.places() == expected


def test_a_group_that_is_made_for_it_gets_the_next_offsets_to_read(stream, make_topic, producer, admin):
    topic, group = make_topic(queues=1), f"group-{uuid.uuid4().hex}"
    queues = admin.fetch_subscribe_queues(topic)
    fill(producer, admin, {queues[0]: 7, queues[1]: 2})
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 5}
    query = stream(topic=topic, group=group, commitOffsetsToGroup="true", **options)

    query.run()

    assert [admin.fetch_consumer_offsets(group, topic)[queue] for queue in queues] == [7, 2]
    assert next_offsets(query.planned()[-1], queues) == [7, 2]
