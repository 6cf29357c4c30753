"""Reads and streams on Spark that nothing else tests: windows by time, 4 MB, expiry, pandas, SQL modes."""

import re
import sys
from collections import Counter
from datetime import datetime, timedelta
from importlib.util import find_spec

import pytest
from pyspark.sql.functions import count, window

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
from tests.spark.programs import EXECUTORS, program
from tests.spark.streams import await_true, error_of, fill
from tests.support.patience import PATIENT_WRITE
from tests.support.reading import await_readable
from tests.support.resting import RestingCluster
from tests.support.spark_processes import environment, run, standalone_cluster

pytestmark = pytest.mark.slow

WIDTH = timedelta(milliseconds=10)
BODY_BYTES, LARGE = 4_000_000, 40  # 160 MB together


@pytest.mark.parametrize("column", ["storeTimestamp", "bornTimestamp"])
def test_a_window_by_a_time_of_messages_has_each_message_once_over_restarts(
    column, spark, stream, make_topic, producer, admin, read_rows, tmp_path
):
    topic = make_topic(queues=2)
    query = stream(topic=topic, startingOffsets="earliest")

    def run_windows():
        frame = query.load().withWatermark(column, "0 seconds")
        counted = frame.groupBy(window(column, f"{WIDTH // timedelta(milliseconds=1)} milliseconds"))
        writer = counted.agg(count("*").alias("messages")).writeStream.format("parquet")
        writer = writer.option("path", str(tmp_path / "windows"))
        writer = writer.option("checkpointLocation", str(tmp_path / "windows-checkpoint"))
        assert writer.trigger(availableNow=True).start().awaitTermination(300)

    for _ in range(3):
        await_readable(admin, producer.send_many([Message(topic, b"x")] * 200))
        run_windows()

    times = [getattr(row, column) for row in read_rows(topic=topic, columns=column)]
    last = max(times)  # the watermark: windows that end later are still open
    expected = Counter(begin for begin in map(_begin_of_window, times) if begin + WIDTH <= last)
    rows = spark.read.parquet(str(tmp_path / "windows")).select("window.start", "messages").collect()
    found = [(row.start.astimezone(last.tzinfo), row.messages) for row in rows]
    assert len(expected) > 1
    assert sorted(found) == sorted(expected.items())


def _begin_of_window(time: datetime) -> datetime:
    return time - timedelta(microseconds=time.microsecond % (WIDTH // timedelta(microseconds=1)))


def test_messages_of_4_mb_pass_through_executors_with_little_memory(
    tmp_path, local_cluster, make_topic, producer, admin
):
    source, target = make_topic(queues=1), make_topic(queues=1)
    fill(producer, admin, {admin.fetch_subscribe_queues(source)[0]: LARGE}, body=bytes(BODY_BYTES))
    text = program(
        "builder = builder.master(sys.argv[1]).config('spark.executor.pyspark.memory', '1g')",
        EXECUTORS,
        "spark = builder.getOrCreate()",
        "options = {'nameServer': sys.argv[2], 'topic': sys.argv[3]}",
        "rows = spark.read.format('rocketmq').options(**options).load()",
        f"written = {{**options, 'topic': sys.argv[4], **{PATIENT_WRITE!r}}}",
        "rows.select('body').write.format('rocketmq').options(**written).mode('append').save()",
        "back = spark.read.format('rocketmq').options(**{**options, 'topic': sys.argv[4]}).load()",
        "print(back.selectExpr('count(*)', 'min(length(body))', 'max(length(body))').first())",
    )
    with standalone_cluster(tmp_path) as url:
        arguments = [url, local_cluster.name_server, source, target]
        *_, printed = run([sys.executable, "-c", text, *arguments], environment())

    size = BODY_BYTES
    assert printed.replace(" ", "").endswith(
        f"count(1)={LARGE},min(length(body))={size},max(length(body))={size})"
    )


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_rows_are_equal_in_both_of_sparks_modes_of_sql(ansi, spark, make_topic, write, read):
    topic, before = make_topic(queues=2), spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        write([(b"7", "t"), (b"no number", None)], "body binary, tags string", topic=topic)
        numbers = read(topic=topic).selectExpr("try_cast(string(body) AS int) AS number", "tags").collect()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)

    assert Counter(map(tuple, numbers)) == Counter([(7, "t"), (None, None)])


@pytest.mark.filterwarnings("ignore:`to_pandas` loads all data")
@pytest.mark.skipif(find_spec("pandas") is None, reason="pip install pandas")
def test_pandas_on_spark_counts_the_same_messages(make_topic, read, producer, admin):
    topic = make_topic(queues=2)
    await_readable(admin, producer.send_many([Message(topic, b"x", tags=f"t{n % 3}") for n in range(30)]))

    counted = read(topic=topic).select("tags", "queueOffset").pandas_api().groupby("tags").size()

    assert counted.to_pandas().to_dict() == {"t0": 10, "t1": 10, "t2": 10}


@pytest.fixture(scope="module")
def forgetful():
    """A broker that deletes every file but the last, every ten seconds."""
    settings = {"mappedFileSizeCommitLog": "1048576", "mappedFileSizeConsumeQueue": "6000"}
    hours = ";".join(f"{hour:02}" for hour in range(24))
    with RestingCluster(
        brokers=1, broker_settings={**settings, "fileReservedTime": "0", "deleteWhen": hours}
    ) as one:
        yield one


def test_messages_that_expired_fail_a_stream_with_their_offsets_and_are_passed_over_on_request(
    forgetful, stream
):
    config = ClientConfig(name_server=forgetful.name_server)
    with Admin(config) as admin, Producer(ProducerConfig(name_server=forgetful.name_server)) as producer:
        admin.create_topic("Expiring", read_queue_nums=1, write_queue_nums=1)
        (queue,) = admin.fetch_subscribe_queues("Expiring")
        options = {"nameServer": forgetful.name_server, "topic": "Expiring"}
        query = stream(**options, startingOffsets="earliest")
        fill(producer, admin, {queue: 3})
        query.run()
        fill(producer, admin, {queue: 1200}, body=bytes(4000))  # four files of the commit log
        await_true(lambda: admin.min_offset(queue) > 3, "the broker to delete files")

        text = error_of(query.run)
        loss = r"offsets \[3, \d+\) of Expiring/broker-a/0 have expired: set option 'failOnDataLoss' to false"
        assert re.search(loss, text)

        lenient = stream(**options, failOnDataLoss="false")
        lenient.run()
        fill(producer, admin, {queue: 2})
        lenient.run()
        offsets = sorted(row.queueOffset for row in lenient.rows())
    assert offsets[:3] == [0, 1, 2]
    assert offsets[-2:] == [1203, 1204]
    assert len(offsets) == len(set(offsets))
    assert 3 not in offsets
