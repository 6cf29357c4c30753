"""The place of a write task, from Spark's context, the stamps made of it, and what a task logs."""

import logging

import pyarrow as pa
import pytest

from rmqtools.errors import ConfigError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.testing import FakeCluster
from spark_connector.options.option_table import parse_options
from spark_connector.options.write_settings import write_options
from spark_connector.worker import clients
from spark_connector.write.write_task import TaskPlace, place_of_task, write_rows


class Context:
    """The context of a running task."""

    def __init__(self, **properties: str) -> None:
        self.properties = {name.replace("_", "."): text for name, text in properties.items()}

    def getLocalProperty(self, name):
        return self.properties.get(name)

    def partitionId(self):
        return 3

    def attemptNumber(self):
        return 1


def options(**given):
    return write_options(parse_options({"nameServer": "h:1", "topic": "T", "stamp": "true", **given}))


def test_a_write_outside_of_queries_has_the_id_made_for_it():
    assert place_of_task(Context(), "made") == TaskPlace("made", 0, 3, 1, is_made=True)
    assert place_of_task(None, "made") == TaskPlace("made", 0, 0, 0, is_made=True)


def test_a_write_inside_a_query_has_the_querys_id_and_batch():
    context = Context(sql_streaming_queryId="q", streaming_sql_batchId="7")

    assert place_of_task(context, "made") == TaskPlace("q", 7, 3, 1)


def test_a_write_by_spark_connect_with_stamps_asks_for_an_id():
    place = place_of_task(Context(spark_job_tags="x,SparkConnect_OperationTag_1"), "made")

    with pytest.raises(ConfigError, match="option 'stamp' needs option 'stampId' on Spark Connect"):
        place.stamper(options())
    stamper = place.stamper(options(stampId="run-7"))
    assert stamper is not None
    assert stamper.stamp_id == "run-7"
    assert place.stamper(options(stamp="false")) is None


STREAM = {"spark_sql_cbo_enabled": "false", "spark_sql_streaming_internal_stateStore_partitions": "2"}


@pytest.mark.parametrize(
    "settings", [STREAM, {"spark_sql_cbo_enabled": "false", "spark_sql_adaptive_enabled": "false"}]
)
@pytest.mark.parametrize("given", [{}, {"stamp": "false", "delivery": "exactlyOnce", "stampId": "x"}])
def test_a_write_of_a_stream_that_does_not_know_its_micro_batch_is_refused(settings, given):
    place = place_of_task(Context(**settings), "made")

    with pytest.raises(
        ConfigError, match=r"threads of foreachBatch do not inherit: .*inheritable_thread_target"
    ):
        write_rows(options(**given), [], place)


CONNECT = STREAM | {"spark_job_tags": "x,SparkConnect_OperationTag_1"}


@pytest.mark.parametrize("given", [{}, {"stamp": "false", "delivery": "exactlyOnce"}])
def test_foreach_batch_on_spark_connect_needs_the_number_of_the_micro_batch_in_its_id(given):
    place = place_of_task(Context(**CONNECT), "made")

    for wrong in ({}, {"stampId": "orders"}):
        with pytest.raises(ConfigError, match=r"on Spark Connect: put it at the end of option 'stampId'"):
            place.check(options(**given, **wrong))
    place.check(options(**given, stampId="orders-7"))


@pytest.mark.parametrize(
    "settings",
    [
        STREAM | {"sql_streaming_queryId": "q", "streaming_sql_batchId": "7"},
        {"spark_sql_cbo_enabled": "false"},
        {"spark_sql_cbo_enabled": "false", "spark_sql_adaptive_enabled": "true"},
        {"spark_sql_adaptive_enabled": "false"},
    ],
)
def test_a_write_that_knows_its_micro_batch_or_has_none_is_not_refused(settings):
    place_of_task(Context(**settings), "made").check(options())


@pytest.mark.parametrize(
    ("place", "given", "stamped"),
    [
        pytest.param(TaskPlace("made", 0, 1, 0, is_made=True), {}, ("made", None), id="batch"),
        pytest.param(
            TaskPlace("made", 0, 1, 0, is_made=True), {"stampId": "x"}, (None, "x"), id="batch-with-id"
        ),
        pytest.param(TaskPlace("q", 7, 1, 0), {}, ("q", None), id="query"),
        pytest.param(TaskPlace("q", 7, 1, 0), {"stampId": "x"}, ("q", "x"), id="query-with-id"),
    ],
)
def test_stamps_are_made_of_ids_that_come_again(place, given, stamped):
    stamper = place.stamper(options(**given))

    assert (stamper.query, stamper.stamp_id) == stamped


@pytest.mark.parametrize(("faults", "retried"), [(0, []), (1, [4])])
def test_a_task_logs_once_that_rows_needed_another_attempt(caplog, faults, retried):
    rows = pa.record_batch({"body": pa.array([b"a", b"b", b"c", b"d"])})
    with FakeCluster() as cluster, caplog.at_level(logging.WARNING):
        cluster.create_topic("T", queues=1)
        cluster.fault(code=RequestCode.SEND_BATCH_MESSAGE, times=faults, answer=ResponseCode.SYSTEM_BUSY)
        write_rows(options(nameServer=cluster.name_server), [rows], TaskPlace("q", 0, 3, 0))
        clients._CACHE.close_all()

    found = [record.retried for record in caplog.records if record.message.startswith("rows_retried ")]
    assert found == retried
