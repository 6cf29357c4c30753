"""Exactly-once writes of real jobs: what failed leaves nothing, what runs again adds nothing."""

from collections import Counter
from functools import partial

import pytest
from pyspark.errors import PythonException

import spark_connector
from rmqtools import Admin, ClientConfig
from tests.support.cluster_scene import wait_until
from tests.support.patience import PATIENCE, PATIENT_WRITE

TRIES = 20


@pytest.fixture
def options(local_cluster):
    def of(topic, **more):
        return {"nameServer": local_cluster.name_server, "topic": topic, "delivery": "exactlyOnce"} | more

    return of


def keys_in_order(rows):
    """Per sharding key, the numbers in the order of their queue."""
    found: dict[str, list[int]] = {}
    for row in sorted(rows, key=lambda row: (row.brokerName, row.queueId, row.queueOffset)):
        number = int(bytes(row.body))
        found.setdefault(str(number % 5), []).append(number)
    return found


def save(frame, given):
    """Save, and start the job again where a busy broker refused a row: its id makes that safe."""
    for _ in range(TRIES):
        try:
            frame.write.format("rocketmq").options(**given).mode("append").save()
        except PythonException as error:
            assert "SYSTEM_BUSY" in str(error)  # noqa: PT017 - any other error is raised
        else:
            return
    raise AssertionError(f"a busy broker in {TRIES} runs")


def test_a_job_leaves_each_row_once_in_the_order_of_its_key_however_often_it_runs(
    spark, make_topic, read_rows, options
):
    topic = make_topic()
    frame = spark.range(300).selectExpr(
        "CAST(id AS STRING) body", "CAST(id % 5 AS STRING) shardingKey", "map('colour', 'blue') properties"
    )
    given = options(topic, stampId="night", **PATIENT_WRITE)

    for _ in range(2):
        save(frame.coalesce(1), given)

    rows = read_rows(topic=topic)
    assert Counter(int(bytes(row.body)) for row in rows) == Counter(range(300))
    assert keys_in_order(rows) == {str(key): list(range(key, 300, 5)) for key in range(5)}
    assert {dict(row.properties)["colour"] for row in rows} == {"blue"}
    status = spark_connector.exactly_once_status(given)
    assert (status.decided, status.copied, status.is_finished) == (300, 300, True)


def await_rows(name_server, topic):
    with Admin(ClientConfig(name_server=name_server, request_timeout=10.0)) as admin:
        queues = admin.fetch_subscribe_queues(topic)
        wait_until(lambda: any(map(admin.max_offset, queues)), seconds=PATIENCE)


def fail_after_others(name_server, topic, batches):
    """Pass on the rows of one task; the other fails once rows of the first are stored."""
    for batch in batches:
        if batch.column("number")[0].as_py() > 0:
            await_rows(name_server, topic)
            raise ValueError("this task fails")
        yield batch.select(["body"])


def test_a_job_that_fails_leaves_no_row(spark, make_topic, read_rows, options):
    topic = make_topic()
    given = options(topic, stampId="night", **PATIENT_WRITE)
    failing = partial(fail_after_others, given["nameServer"], f"{topic}-staging")
    frame = spark.range(0, 10, 1, 2).selectExpr("id AS number", "CAST(id AS STRING) body")

    with pytest.raises(PythonException, match="this task fails"):
        frame.mapInArrow(failing, "body string").write.format("rocketmq").options(**given).mode(
            "append"
        ).save()

    assert spark_connector.exactly_once_status(given).staged == 5
    assert read_rows(topic=topic) == []


def test_a_stream_whose_commit_failed_stores_the_rows_that_were_decided_first(
    make_topic, lines, write_stream, read_rows, options, tmp_path
):
    topic = make_topic()
    lines(*map(str, range(100)))
    frame = lines.frame.selectExpr("value body")

    first = write_stream(frame, **options(topic))
    for file in ("0", ".0.crc"):  # as if the driver was killed right after its commit
        (tmp_path / "checkpoint" / "commits" / file).unlink()
    write_stream(frame, **options(topic))

    assert Counter(int(bytes(row.body)) for row in read_rows(topic=topic)) == Counter(range(100))
    status = spark_connector.exactly_once_status(options(topic), query=first.id)
    assert (status.batch, status.decided, status.is_finished) == (0, 100, True)
