"""``processAllAvailable()`` includes every row stored before the call; what waits for that stays prompt."""

import pytest

from rmqtools.clock import SYSTEM_CLOCK
from tests.spark.streams import await_true, counts, fill, stored_places

LONG = "10m"  # a poll interval that no test waits for
PROMPT = 60.0  # seconds, on a busy machine


def test_rows_stored_before_the_call_are_in_the_sink_after_it(stream, make_topic, producer, admin):
    topic = make_topic(queues=1)
    queues = dict.fromkeys(admin.fetch_publish_queues(topic), 1)
    fill(producer, admin, queues)
    query = stream(topic=topic, startingOffsets="earliest", pollInterval="2s")
    running = query.start()

    for _ in range(3):
        fill(producer, admin, queues)
        running.processAllAvailable()
        assert query.places() == stored_places(admin, topic)


def test_an_idle_query_stops_at_once_whatever_its_poll_interval(stream, make_topic, producer, admin):
    topic = make_topic(queues=1)
    fill(producer, admin, dict.fromkeys(admin.fetch_publish_queues(topic), 1))
    query = stream(topic=topic, startingOffsets="earliest", pollInterval=LONG).start()
    await_true(lambda: "Getting offsets" in query.status["message"], "the wait of an idle query")
    began = SYSTEM_CLOCK.monotonic()

    query.stop()

    assert SYSTEM_CLOCK.monotonic() - began < PROMPT
    assert query.exception() is None


@pytest.mark.slow  # limits have shorter tests
def test_a_limited_backlog_is_read_without_waits_beside_an_idle_source(
    stream, make_topic, producer, admin, monkeypatch
):
    busy, idle = make_topic(queues=1), make_topic(queues=1)
    for topic in (busy, idle):
        fill(producer, admin, dict.fromkeys(admin.fetch_publish_queues(topic), 3))
    limits = {"startingOffsets": "earliest", "pollInterval": LONG, "maxOffsetsPerTrigger": 2}
    both = stream(topic=busy, **limits)
    frame = both.load().union(stream(topic=idle, pollInterval=LONG).load())
    monkeypatch.setattr(both, "load", lambda: frame)
    query = both.start()

    await_true(lambda: sum(counts(query)) == 6, "all rows of the busy topic", timeout=2 * PROMPT)

    assert counts(query) == [2, 2, 2]
