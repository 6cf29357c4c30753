"""What a write task reports, and what the driver logs of it."""

import logging

import pyarrow as pa
import pytest

from rmqtools.arrow import SendReport
from spark_connector.write import writer
from spark_connector.write.write_task import TaskReport
from spark_connector.write.writer import RocketMQBatchWriter
from tests.support.spark_options import write_of


@pytest.fixture
def make_writer(local_cluster):
    return lambda topic: RocketMQBatchWriter(write_of(nameServer=local_cluster.name_server, topic=topic))


def bodies(*values: bytes) -> pa.RecordBatch:
    return pa.record_batch({"body": pa.array(values, pa.binary())})


def test_after_commit_the_brokers_offsets_hold_every_row(make_topic, make_writer, admin):
    topic = make_topic()
    writer = make_writer(topic=topic)

    writer.commit([writer.write(iter([bodies(*[b"x" * 100] * 10_000)]))])

    assert sum(admin.max_offset(queue) for queue in admin.fetch_subscribe_queues(topic)) == 10_000


def test_a_queue_that_does_not_get_there_is_told_and_not_raised(
    make_writer, make_topic, admin, monkeypatch, caplog
):
    queue = admin.fetch_subscribe_queues(make_topic())[0]
    monkeypatch.setattr(writer, "_READABLE_TIMEOUT", 0.2)

    make_writer(topic=queue.topic).commit([TaskReport(SendReport(acked=1, end_offsets={queue: 1}))])

    assert f"{queue} shows offsets up to 0 after 0.2 s, not up to 1" in caplog.text


def test_commit_logs_what_all_tasks_did(make_writer, caplog):
    reports = [TaskReport(SendReport(acked=3, retried=1)), TaskReport(SendReport(acked=4, unknown=2))]

    with caplog.at_level(logging.INFO, "spark_connector.write.writer"):
        make_writer(topic="T").commit(reports)

    (line,) = caplog.messages
    assert line.startswith("write_committed")
    assert "tasks=2 acked=7 retried=1 not_replicated=0 unknown=2 failed=0" in line


def test_abort_logs_what_stays_behind(make_writer, caplog):
    with caplog.at_level(logging.INFO, "spark_connector.write.writer"):
        make_writer(topic="T").abort([TaskReport(SendReport(acked=3)), None])

    assert "write_aborted" in caplog.text
    assert "acked=3" in caplog.text


def test_a_task_that_fails_logs_how_far_it_came(make_topic, make_writer, caplog):
    rows = [bodies(*[b"a"] * 2000), bodies(b"")]

    with pytest.raises(ValueError, match="row 2000: body is empty"):
        make_writer(topic=make_topic()).write(iter(rows))

    assert "write_task_failed" in caplog.text
    assert "acked=2000" in caplog.text
