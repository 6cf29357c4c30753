"""The Spark side of the demo: a quiet local session, one write, one read."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from examples.demo_check import QueueKey, StoredRow
from examples.demo_data import SEQUENCE, DemoRow

# Properties that a 5.5.0 broker or the producer adds; all others must be the user's.
SYSTEM_PROPERTIES: Final = frozenset(
    {"TAGS", "KEYS", "UNIQ_KEY", "WAIT", "CLUSTER", "MSG_REGION", "TRACE_ON"}
)

_ARROW_SCHEMA: Final = pa.schema(
    {
        "body": pa.binary(),
        "tags": pa.string(),
        "keys": pa.string(),
        "properties": pa.map_(pa.string(), pa.string()),
    }
)
# The JVM runs for half a minute only: less compiling saves more than half of its processor time.
_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_QUIET: Final = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex
"""


@contextmanager
def local_spark(work: Path) -> Iterator[SparkSession]:
    """Start a session with two tasks at a time, on the loopback interface, with all its files in ``work``."""
    os.environ.pop("SPARK_HOME", None)  # another Spark than the one installed beside this Python
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    quiet = work / "log4j2.properties"
    quiet.write_text(_QUIET)
    java = f"{_SHORT_LIVED} -Dlog4j2.configurationFile={quiet} -Djava.io.tmpdir={work}"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("rmqtools demo")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", str(work))
        .config("spark.sql.warehouse.dir", str(work / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    try:
        yield session
    finally:
        session.stop()


def make_frame(spark: SparkSession, rows: Sequence[DemoRow]) -> DataFrame:
    """Make a DataFrame of the rows, in their order, with the columns that ``format("rocketmq")`` writes.

    The checkpoint fixes the Spark partition of each row. Without it Spark may plan every use of the DataFrame
    anew, so that the partitions asked for differ from those written.
    """
    table = pa.Table.from_pylist([row._asdict() for row in rows], _ARROW_SCHEMA)
    return spark.createDataFrame(table).localCheckpoint()


def task_by_sequence(frame: DataFrame) -> dict[int, int]:
    """Return the task that will write each ``seq``: every partition of the DataFrame becomes one task."""
    numbered = frame.select(frame.properties[SEQUENCE].alias("seq"), spark_partition_id().alias("task"))
    return {int(row.seq): row.task for row in numbered.collect() if row.seq is not None}


def write_topic(frame: DataFrame, name_server: str, topic: str) -> None:
    """Write through Spark. Returns when brokers have acknowledged every message.

    ``sendTimeout`` (seconds) is long, because
    a send that is repeated without an answer may be stored twice, and answers are slow on an overloaded
    machine. ``maxInFlight`` 1 keeps the order that the demo checks, even if a busy broker refuses a request:
    no later rows can be stored before those that are sent again.
    """
    (
        frame.write.format("rocketmq")
        .option("nameServer", name_server)
        .option("topic", topic)
        .option("rocketmq.sendTimeout", 60)
        .option("rocketmq.maxInFlight", 1)
        .mode("append")
        .save()
    )


def read_topic(spark: SparkSession, name_server: str, topic: str) -> list[StoredRow]:
    """Read the whole topic through Spark; each queue in its order."""
    frame = spark.read.format("rocketmq").option("nameServer", name_server).option("topic", topic).load()
    table = frame.select(
        "brokerName", "queueId", "queueOffset", "body", "tags", "keys", "properties"
    ).toArrow()
    return [
        StoredRow(QueueKey(broker_name, queue_id), offset, DemoRow(body, tags, keys, _users_own(properties)))
        for batch in table.to_batches()
        for broker_name, queue_id, offset, body, tags, keys, properties in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        )
    ]


def _users_own(properties: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in properties if name not in SYSTEM_PROPERTIES))
