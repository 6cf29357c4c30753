"""Writes with delivery=exactlyOnce, their tasks and their commits called as Spark calls them."""

import pickle
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import MapType, StringType, StructType

import spark_connector
from rmqtools.errors import ConfigError, ExactAppendError, TopicNotFoundError
from rmqtools.testing import FakeCluster
from spark_connector.write.exactly_once import check_batch_write, commit_staged, prepare
from spark_connector.write.write_schema import for_schema
from spark_connector.write.write_task import TaskPlace, TaskReport, write_rows
from tests.support.spark_options import write_of

TOPIC = "orders"


@pytest.fixture
def cluster(cluster):
    cluster.create_topic(TOPIC, queues=2)
    return cluster


def texts(cluster: FakeCluster, **more: str) -> dict[str, str]:
    return {"nameServer": cluster.name_server, "topic": TOPIC, "delivery": "exactlyOnce", **more}


def given(cluster: FakeCluster, **more: str) -> Any:
    return write_of(**texts(cluster, **more))


def prepared(cluster: FakeCluster, **more: str) -> Any:
    options = given(cluster, **more)
    prepare(options)
    return options


def task(options: Any, *bodies: str, query: str | None = "q", batch: int = 0) -> TaskReport:
    """Run one task, and return its report as it arrives at the driver."""
    rows = pa.record_batch({"body": pa.array([body.encode() for body in bodies], pa.binary())})
    place = TaskPlace(query or "made", batch, 0, 0, is_made=query is None)
    report: TaskReport = pickle.loads(pickle.dumps(write_rows(options, [rows], place)))
    return report


def stored(cluster: FakeCluster) -> list[str]:
    return sorted(message.body.decode() for message in cluster.messages(TOPIC))


def test_rows_of_committed_tasks_are_stored_once_and_those_of_other_attempts_never(cluster):
    options = prepared(cluster)
    task(options, "an attempt that failed")

    done = commit_staged(options, [task(options, "a", "b"), task(options, "c")])

    assert done is not None
    assert (done.rows, done.copied) == (3, 3)
    assert stored(cluster) == ["a", "b", "c"]


def test_a_micro_batch_that_spark_runs_again_is_not_stored_again(cluster):
    options = prepared(cluster)
    for _ in range(2):
        commit_staged(options, [task(options, "a", "b")])
    commit_staged(options, [task(options, "c", batch=1)])

    assert stored(cluster) == ["a", "b", "c"]


def test_a_job_run_again_with_its_id_is_not_stored_again_and_one_with_another_id_is(cluster, caplog):
    warned = []
    for stamp_id in ("monday", "monday", "tuesday"):
        caplog.clear()
        options = prepared(cluster, stampId=stamp_id)
        commit_staged(options, [task(options, stamp_id, query=None)])
        warned.append("stamp_id_used_before" in caplog.text)

    assert stored(cluster) == ["monday", "tuesday"]
    assert warned == [False, True, False]


@pytest.mark.parametrize("bodies", [("c", "d", "e"), ("a", "c"), ("a",)])
def test_a_job_run_again_with_other_rows_is_refused(cluster, bodies):
    options = prepared(cluster, stampId="monday")
    commit_staged(options, [task(options, "a", "b", query=None)])

    with pytest.raises(
        ExactAppendError, match=r"2 (other )?rows of it are stored in topic 'orders'.*a new stampId"
    ):
        commit_staged(options, [task(options, *bodies, query=None)])

    assert stored(cluster) == ["a", "b"]


def test_a_micro_batch_is_the_same_however_its_rows_are_divided_and_ordered(cluster):
    options = prepared(cluster)
    commit_staged(options, [task(options, "a", "b"), task(options, "c", "d")])

    done = commit_staged(options, [task(options, "d", "a", "c"), task(options, "b")])

    assert done is not None
    assert (done.rows, done.copied) == (4, 0)
    assert stored(cluster) == ["a", "b", "c", "d"]


def test_a_copy_is_the_same_however_rows_with_a_sharding_key_and_without_one_are_divided(cluster):
    schema = StructType().add("body", "binary").add("properties", MapType(StringType(), StringType()))
    options = for_schema(prepared(cluster), schema.add("queueOffset", "long"))
    properties = pa.array([{"__SHARDINGKEY": "k"}, {}], pa.map_(pa.string(), pa.string()))
    rows = pa.record_batch({"body": [b"a", b"b"], "properties": properties, "queueOffset": [0, 1]})

    done = [
        commit_staged(options, [write_rows(options, parts, TaskPlace("q", 0, 0, 0))])
        for parts in ([rows], [rows.slice(0, 1), rows.slice(1)])
    ]

    assert [commit.copied for commit in done if commit is not None] == [2, 0]
    assert stored(cluster) == ["a", "b"]


def test_the_first_rows_of_a_micro_batch_are_kept_if_the_option_says_so(cluster, caplog):
    options = prepared(cluster, onChangedRows="keepFirst")
    for body in ("a", "b"):
        commit_staged(options, [task(options, body)])

    assert stored(cluster) == ["a"]
    assert "first_rows_kept" in caplog.text


def test_a_first_run_without_rows_does_not_use_up_its_id(cluster):
    options = prepared(cluster, stampId="monday")
    commit_staged(options, [task(options, query=None)])
    commit_staged(options, [task(options, "a", query=None)])

    assert stored(cluster) == ["a"]


def test_two_targets_with_one_staging_topic_and_one_id_both_get_their_rows(cluster):
    cluster.create_topic("others", queues=2)
    for topic in (TOPIC, "others"):
        options = prepared(cluster, topic=topic, stampId="monday", stagingTopic="shared")
        commit_staged(options, [task(options, topic, query=None)])

    assert stored(cluster) == [TOPIC]
    assert [message.body for message in cluster.messages("others")] == [b"others"]


def test_queries_that_write_to_one_topic_do_not_disturb_each_other(cluster):
    options = prepared(cluster)
    for query in ("one", "other"):
        commit_staged(options, [task(options, query, query=query)])

    assert stored(cluster) == ["one", "other"]


def test_a_commit_without_tasks_does_nothing(cluster):
    assert commit_staged(given(cluster), []) is None


def test_the_status_names_the_last_micro_batch(cluster):
    options = prepared(cluster)
    commit_staged(options, [task(options, "a", "b", batch=7)])

    status = spark_connector.exactly_once_status(texts(cluster), query="q")

    assert (status.batch, status.decided, status.copied, status.is_finished) == (7, 2, 2, True)


def test_a_batch_that_nobody_decided_cannot_be_given_up(cluster):
    prepare(given(cluster))

    with pytest.raises(ConfigError, match="there is no commit 3 of"):
        spark_connector.give_up_batch(texts(cluster), query="q", batch=3)


def test_a_missing_target_is_refused_before_anything_is_made(cluster):
    with pytest.raises(TopicNotFoundError, match="nowhere"):
        prepare(given(cluster, topic="nowhere"))


def test_a_broker_that_keeps_messages_for_less_than_an_outage_is_refused(cluster):
    with pytest.raises(ConfigError, match="fileReservedTime=72 hours: less than the longest outage of 240"):
        prepare(given(cluster, longestOutage="10d"))


def test_the_staging_topic_gets_the_queues_that_the_target_gets_later(cluster):
    prepare(given(cluster))
    cluster.create_topic(TOPIC, queues=4)

    options = prepared(cluster)
    commit_staged(options, [task(options, *map(str, range(8)))])

    assert stored(cluster) == list(map(str, range(8)))


def test_a_batch_write_needs_an_id(cluster):
    with pytest.raises(ConfigError, match="needs option 'stampId' for a batch write"):
        check_batch_write(given(cluster))
    check_batch_write(given(cluster, stampId="monday"))


def test_rows_with_a_delay_are_refused(cluster):
    schema = StructType().add("body", "binary").add("delayLevel", "integer")

    with pytest.raises(ConfigError, match="column 'delayLevel': rows with a delay cannot be staged"):
        for_schema(given(cluster), schema)
