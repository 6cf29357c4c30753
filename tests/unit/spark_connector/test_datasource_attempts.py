"""Tasks that Spark runs again: reads give the same rows, writes store rows again with equal stamps."""

import pickle

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable

from rmqtools import MessageQueue
from spark_connector.read.batch_reader import RocketMQBatchReader
from spark_connector.read.stream_reader import RocketMQStreamReader
from spark_connector.write.stamps import HASH, STAMP
from spark_connector.write.write_task import TaskPlace, write_rows
from spark_connector.write.writer import RocketMQBatchWriter
from tests.support.spark_options import batch_of, stream_of, write_of


def at(cluster):
    return {"nameServer": cluster.name_server, "topic": "orders"}


def test_a_read_task_that_is_run_again_reads_the_same_messages_whatever_came_meanwhile(cluster):
    for number in range(5):
        cluster.store("orders", b"%d" % number)
    (task,) = RocketMQBatchReader(batch_of(**at(cluster))).partitions()
    attempts = []
    for _ in range(2):
        again = RocketMQBatchReader(batch_of(**at(cluster))).read(task)
        attempts.append([body for batch in again for body in batch.column("body").to_pylist()])
        cluster.store("orders", b"later")

    assert attempts == [[b"0", b"1", b"2", b"3", b"4"]] * 2


def test_a_micro_batch_that_is_run_again_reads_the_same_messages_of_all_queues(cluster):
    cluster.create_topic("payments", queues=2)
    for number in range(4):
        cluster.store("payments", b"%d" % number, queue=MessageQueue("payments", "broker-a", number % 2))
    options = stream_of(**at(cluster) | {"topic": "payments"}, startingOffsets="earliest")
    planner = RocketMQStreamReader(options)
    start = planner.initialOffset()
    end = planner.latestOffset(start, ReadAllAvailable())
    attempts = []
    for _ in range(2):
        again = RocketMQStreamReader(options)  # as after a restart of the query
        batches = [batch for task in again.partitions(start, end) for batch in again.read(task)]
        attempts.append([body for batch in batches for body in batch.column("body").to_pylist()])
        cluster.store("payments", b"later")

    assert attempts == [[b"0", b"2", b"1", b"3"]] * 2


def test_a_write_task_that_is_run_again_stores_its_rows_again_with_equal_stamps(cluster):
    rows = pa.record_batch({"body": pa.array([b"a", b"b"], pa.binary())})
    for attempt in range(2):
        options = write_of(**at(cluster), stamp="true")
        write_rows(options, [rows], TaskPlace("query", 7, 3, attempt))

    stored = cluster.messages("orders")
    stamps = [(each.body, each.properties[STAMP], each.properties[HASH]) for each in stored]
    assert [body for body, _, _ in stamps] == [b"a", b"b"] * 2
    assert stamps[:2] == stamps[2:]
    assert len(set(stamps)) == 2


def test_copies_of_a_batch_writer_stamp_with_the_id_that_the_driver_made(cluster):
    rows = pa.record_batch({"body": pa.array([b"a"], pa.binary())})
    writer = pickle.dumps(RocketMQBatchWriter(write_of(**at(cluster), stamp="true")))
    for _ in range(2):
        pickle.loads(writer).write(iter([rows]))

    stamps = [each.properties[STAMP] for each in cluster.messages("orders")]
    assert len(stamps) == 2
    assert len(set(stamps)) == 1
