"""Streaming reads: where they start, that every message comes once, and that a restart goes on."""

import uuid
from collections import Counter

from rmqtools.clock import SYSTEM_CLOCK
from tests.spark.streams import await_true, counts, error_of, fill, stored_places
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
