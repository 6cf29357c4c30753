"""The official Java client and our Spark data source read what the other wrote."""

from itertools import product
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from tests.interop.messages import (
    BODIES,
    COMPRESSION_BITS,
    COMPRESSIONS,
    KEYS,
    PROPERTIES,
    TAGS,
    content,
    dumped_content,
    peer_messages,
    position,
)
from tests.support.docker_cluster import DockerCluster
from tests.support.java_peer import JavaPeer
from tests.support.patience import PATIENT_WRITE

pytestmark = [pytest.mark.docker, pytest.mark.spark]

WRITTEN_SCHEMA = "body binary, tags string, keys string, properties map<string, string>"


def read_rows(spark: SparkSession, cluster: DockerCluster, topic: str) -> list[Row]:
    reader = spark.read.format("rocketmq").option("nameServer", cluster.name_server).option("topic", topic)
    times = {name: F.unix_millis(F.col(name)) for name in ("bornTimestamp", "storeTimestamp")}
    return reader.load().withColumns(times).collect()


def as_dumped(row: Row) -> dict[str, Any]:
    return {**row.asDict(), "body": bytes(row.body).hex()}


def without_consumers_own(row: dict[str, Any]) -> dict[str, Any]:
    own = ("MIN_OFFSET", "MAX_OFFSET")  # put in by the Java consumer, not stored
    properties = {name: value for name, value in row["properties"].items() if name not in own}
    return {**row, "properties": properties}


@pytest.fixture(scope="module")
def filled(docker_cluster, java_peer, new_topic) -> dict[str, Any]:
    topic = new_topic(queues=2)
    sent = list(peer_messages(topic))
    results = java_peer.fill(docker_cluster.name_server, sent)
    assert {result["sendStatus"] for result in results} == {"SEND_OK"}
    return {"topic": topic, "sent": dict(zip(map(position, results), sent, strict=True))}


@pytest.fixture(scope="module")
def rows(spark, docker_cluster, filled) -> list[dict[str, Any]]:
    return [as_dumped(row) for row in read_rows(spark, docker_cluster, filled["topic"])]


@pytest.fixture(scope="module")
def dumped(docker_cluster, java_peer, filled) -> list[dict[str, Any]]:
    return java_peer.dump(docker_cluster.name_server, filled["topic"])


def test_spark_reads_the_content_that_java_sent(rows, filled):
    assert {position(row): dumped_content(row) for row in rows} == {
        place: content(message) for place, message in filled["sent"].items()
    }
    assert len(rows) == len(filled["sent"])


def test_spark_and_java_read_equal_rows(rows, dumped):
    assert sorted(rows, key=position) == sorted(map(without_consumers_own, dumped), key=position)


def test_java_did_compress_what_it_was_told_to(dumped, filled):
    assert {position(row): row["sysFlag"] for row in dumped} == {
        place: COMPRESSION_BITS[message.compress] for place, message in filled["sent"].items()
    }
    assert {message.compress for message in filled["sent"].values()} == set(COMPRESSIONS)


def test_java_reads_the_rows_that_spark_wrote(
    spark: SparkSession, docker_cluster: DockerCluster, java_peer: JavaPeer, new_topic
):
    topic = new_topic(queues=2)
    varied = list(zip(TAGS, (*KEYS, KEYS[1]), (*PROPERTIES, PROPERTIES[1]), strict=True))
    rows = [
        (bytearray(body), tags, " ".join(keys) or None, {**properties, "row": f"{i:04}"})
        for i, (body, (tags, keys, properties)) in enumerate(product(BODIES, varied))
    ]

    frame = spark.createDataFrame(rows, WRITTEN_SCHEMA).repartition(4)
    options = {"nameServer": docker_cluster.name_server, "topic": topic, **PATIENT_WRITE}
    frame.write.format("rocketmq").options(**options).mode("append").save()

    read = map(dumped_content, java_peer.dump(docker_cluster.name_server, topic))
    assert sorted(read, key=lambda row: row["properties"]["row"]) == [
        {"body": body.hex(), "tags": tags, "keys": keys, "properties": properties}
        for body, tags, keys, properties in rows
    ]
