"""Checkpoints of other versions, as Spark stored them."""

import json
from pathlib import Path

import pytest

from rmqtools import MessageQueue
from tests.spark.streams import fill

SAMPLES = Path(__file__).with_name("checkpoints")
QUEUE = MessageQueue("checkpoint-sample", "broker-a", 0)


@pytest.fixture
def topic(admin, producer):
    """The topic that the samples were made with: 5 messages read, 3 more here."""
    admin.create_topic(QUEUE.topic, read_queue_nums=1, write_queue_nums=1, broker_names=["broker-a"])
    fill(producer, admin, {QUEUE: 8})
    yield QUEUE.topic
    admin.delete_topic(QUEUE.topic)


@pytest.mark.parametrize("version", [pytest.param("1.0", marks=pytest.mark.slow), "1.1"])
def test_a_stored_checkpoint_is_gone_on_from(spark, stream, topic, version):
    query = stream(topic=topic)
    restore(query.checkpoint, version)

    query.run()

    files = spark.read.parquet(f"{query.folder}/rows/part-*.parquet")  # the sink's own log lacks batch 0
    assert sorted(row.queueOffset for row in files.collect()) == [5, 6, 7]


def restore(checkpoint: Path, version: str) -> None:
    """Lay the files out as Spark does: they are stored as one JSON, by path."""
    for name, text in json.loads((SAMPLES / f"{version}.json").read_text()).items():
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text(text)


def test_a_stored_checkpoint_with_marks_is_gone_on_from(spark, stream, topic, read):
    query = stream(topic=topic)
    restore(query.checkpoint, "1.2")
    (marked,) = read(topic=topic).filter("queueOffset = 4").collect()
    file = query.checkpoint / "offsets" / "0"
    time = round(marked.storeTimestamp.timestamp() * 1000)
    file.write_text(file.read_text().replace('"time": 1795296714000', f'"time": {time}'))

    query.run()

    files = spark.read.parquet(f"{query.folder}/rows/part-*.parquet")
    assert sorted(row.queueOffset for row in files.collect()) == [5, 6, 7]
