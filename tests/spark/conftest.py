"""Reading and writing as a user does: by format name, nothing registered."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.cluster import LocalCluster
from tests.support.patience import PATIENCE, PATIENT_WRITE
from tests.support.resting import RestingCluster

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from spark_connector.read.batch_reader import RocketMQBatchReader
    from tests.spark.streams import Stream

_AUTH = "org.apache.rocketmq.auth"
_ACL_SETTINGS = {
    "enablePropertyFilter": "false",  # as brokers have it by default, and our local ones do not
    "authenticationEnabled": "true",
    "authenticationProvider": f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider",
    "initAuthenticationUser": '{"username":"admin","password":"admin-secret-0001"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"admin","secretKey":"admin-secret-0001"}',
    "authorizationEnabled": "true",
    "authorizationProvider": f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider",
}
ADMIN: dict[str, Any] = {"access_key": "admin", "secret_key": "admin-secret-0001"}
_LARGE = "spark.sql.execution.arrow.useLargeVarTypes"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of this folder: they need Spark and a broker, unless one is marked ``spark`` itself."""
    if not item.get_closest_marker("spark"):
        item.add_marker(pytest.mark.spark)
        item.add_marker(pytest.mark.broker)


@pytest.fixture(scope="session")
def acl_cluster() -> Iterator[LocalCluster]:
    """A broker with ACL 2.0, whose administrator is ``ADMIN``, that takes no conditions."""
    with RestingCluster(broker_settings=_ACL_SETTINGS) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def fill_new(admin: Admin, client_config: ClientConfig) -> Callable[..., str]:
    """``fill_new(300, queues=2)``: a new topic with so many messages in each queue; bodies are their numbers.

    ``of(number)`` gives their other fields.
    """

    def make(
        count: int, *, queues: int, of: Callable[[int], dict[str, Any]] = lambda _: {}, **settings: Any
    ) -> str:
        topic = f"filled-{uuid4().hex}"
        admin.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues, **settings)
        ends = dict.fromkeys(admin.fetch_publish_queues(topic), count)
        with Producer(ProducerConfig(name_server=client_config.name_server, group="tests")) as producer:
            for number in range(count):
                for queue in ends:
                    producer.send(Message(topic, b"%d" % number, **of(number)), queue=queue)
        admin.await_readable(ends, timeout=PATIENCE)
        return topic

    return make


@pytest.fixture
def read(spark: "SparkSession", local_cluster: LocalCluster) -> "Callable[..., DataFrame]":
    """``read(topic="T", minPartitions=4)``."""

    def load(**options: Any) -> "DataFrame":
        return (
            spark.read.format("rocketmq")
            .options(**{"nameServer": local_cluster.name_server, **options})
            .load()
        )

    return load


@pytest.fixture
def batch_reader(local_cluster: LocalCluster) -> "Callable[..., RocketMQBatchReader]":
    """``batch_reader(topic="T")``: what plans and reads a batch, in this process: no job of Spark."""
    from spark_connector.read.batch_reader import RocketMQBatchReader
    from tests.support.spark_options import batch_of

    def make(**options: Any) -> RocketMQBatchReader:
        return RocketMQBatchReader(
            batch_of(**{"nameServer": local_cluster.name_server, "topic": None, **options})
        )

    return make


@pytest.fixture
def read_batches(
    batch_reader: "Callable[..., RocketMQBatchReader]",
) -> "Callable[..., list[pa.RecordBatch]]":
    """``read_batches(topic="T")``: the batches that a ``batch_reader`` hands to Spark."""

    def load(**options: Any) -> "list[pa.RecordBatch]":
        reader = batch_reader(**options)
        return [batch for partition in reader.partitions() for batch in reader.read(partition)]

    return load


@pytest.fixture
def read_rows(
    read_batches: "Callable[..., list[pa.RecordBatch]]",
) -> Callable[..., list[SimpleNamespace]]:
    """``read_rows(topic="T")``: the rows of ``read_batches``."""

    def load(**options: Any) -> list[SimpleNamespace]:
        return [SimpleNamespace(**row) for batch in read_batches(**options) for row in batch.to_pylist()]

    return load


@pytest.fixture
def save(local_cluster: LocalCluster) -> "Callable[..., None]":
    """``save(frame, topic="T")``."""

    def save(frame: "DataFrame", *, mode: str = "append", **options: Any) -> None:
        settings = {"nameServer": local_cluster.name_server, **PATIENT_WRITE, **options}
        frame.write.format("rocketmq").options(**settings).mode(mode).save()

    return save


@pytest.fixture
def write(spark: "SparkSession", save: Callable[..., None]) -> Callable[..., None]:
    """``write(rows, "body binary, tags string", topic="T")``; one task, so the order of the rows is kept."""

    def write(rows: Iterable[tuple[Any, ...]], schema: str, **options: Any) -> None:
        save(spark.createDataFrame(list(rows), schema).coalesce(1), **options)

    return write


@pytest.fixture
def large_var_types(spark: "SparkSession") -> "Iterator[None]":
    """Spark exchanges large types with Python, as it does for columns above 2 GiB."""
    spark.conf.set(_LARGE, "true")
    yield
    spark.conf.unset(_LARGE)


@pytest.fixture
def lines(spark: "SparkSession", tmp_path: Path) -> Any:
    """A streaming source, ``lines.frame``: each call adds a file of lines; a micro-batch takes one file."""
    folder = tmp_path / "lines"
    folder.mkdir()

    def add(*texts: str) -> None:
        number = len(list(folder.iterdir()))
        (tmp_path / "new").write_text("\n".join(texts))
        (tmp_path / "new").rename(folder / f"{number:03}.txt")

    lines: Any = add
    lines.frame = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))
    return lines


@pytest.fixture
def write_stream(local_cluster: LocalCluster, tmp_path: Path) -> "Callable[..., StreamingQuery]":
    """Write a stream to its end; the same checkpoint every time, so that a second call is a restart."""
    from tests.spark.streams import run_to_end

    def write(frame: "DataFrame", *, mode: str = "append", **options: Any) -> "StreamingQuery":
        server = {"nameServer": local_cluster.name_server, **PATIENT_WRITE}
        writer = frame.writeStream.format("rocketmq").outputMode(mode).options(**{**server, **options})
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return run_to_end(writer.trigger(availableNow=True).start)

    return write


@pytest.fixture
def stream(
    spark: "SparkSession", local_cluster: LocalCluster, tmp_path: Path
) -> "Iterator[Callable[..., Stream]]":
    """``stream(topic="T", startingOffsets="earliest")``; the same call again is the same query, restarted."""
    from tests.spark.streams import Stream

    def make(**options: Any) -> Stream:
        return Stream(spark, tmp_path, {"nameServer": local_cluster.name_server, **options})

    yield make
    for query in spark.streams.active:
        query.stop()
