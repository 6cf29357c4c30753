"""Queries with state into a topic, each row once, with the driver killed in the middle of commits."""

import json
from collections import Counter

import pytest

from rmqtools import Message
from spark_connector import exactly_once_status
from tests.spark.killed_driver import KilledDriver
from tests.support.patience import PATIENT_WRITE
from tests.support.reading import await_readable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

KILLS, PORTION, PER_SECOND = 2, 600, 20  # numbers sent before a kill, and numbers of a second
BEGIN = 3600  # seconds; at 0, where the first watermark is, Spark drops rows as late
LAST = 10**6 + 1  # a number whose time ends the windows of all others


def events(numbers):
    """The events of some numbers in the order of their times; odd numbers have a second one, 3 s later."""
    first = [(BEGIN + number // PER_SECOND, number, "first") for number in numbers]
    second = [(time + 3, number, "second") for time, number, _ in first if number % 2]
    return [b"%d %d %s" % (number, time, kind.encode()) for time, number, kind in sorted(first + second)]


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("distinct", "{number}"),  # dropDuplicatesWithinWatermark
        ("sessions", "{number} {events}"),  # session_window
        ("joined", "{number} {events}"),  # left outer join of two streams
    ],
)
def test_a_query_with_state_stores_each_row_once_after_kills_in_its_commits(
    local_cluster, make_topic, producer, admin, read_rows, tmp_path, query, row
):
    source, target = (make_topic(queues=1, broker_names=["broker-a"]) for _ in range(2))
    server = {"nameServer": local_cluster.name_server}
    read = {**server, "topic": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "500"}
    exact = {"delivery": "exactlyOnce", "batchBytes": "400"}  # hundreds of requests in a commit
    write = {**server, "topic": target, **exact, **PATIENT_WRITE}
    job = {"job": "write_stateful", "query": query, "source": read, "target": write}
    driver = KilledDriver(tmp_path, {query: job}, admin)

    def send(numbers):
        await_readable(admin, producer.send_many([Message(source, body) for body in events(numbers)]))

    def decided_and_copied():
        query_id = json.loads((tmp_path / query / "checkpoint" / "metadata").read_text())["id"]
        status = exactly_once_status(write, query=query_id)
        return status.decided, status.copied

    def killed_in_a_commit_of(numbers):
        """Kill the driver while it stores what follows from numbers; return what was decided and copied."""
        before = driver.stored(query)
        send(numbers)
        with driver.running():
            driver.await_true(lambda: driver.stored(query) > before)
        return decided_and_copied()

    left = [killed_in_a_commit_of(range(run * PORTION, run * PORTION + PORTION)) for run in range(KILLS)]
    send([LAST])
    errors = driver.finish()

    bodies = (bytes(one.body).decode().rstrip(".") for one in read_rows(topic=target))
    found = Counter(body for body in bodies if not body.startswith(str(LAST)))
    assert errors == {query: None}
    assert any(copied < decided for decided, copied in left), left
    assert found == Counter(row.format(number=n, events=1 + n % 2) for n in range(KILLS * PORTION))
