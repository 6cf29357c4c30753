"""What a batch reads: topics, patterns, chosen queues, special topics; and its columns."""

import json
from uuid import uuid4

import pytest

from rmqtools import Message, aio
from rmqtools.errors import ConfigError
from spark_connector.read.lookup import Lookup
from tests.spark.streams import error_of
from tests.support.reading import await_readable
from tests.support.spark_options import read_of


@pytest.fixture
def prefix():
    return f"sel{uuid4().hex[:8]}"


@pytest.fixture
def fill(admin, producer):
    """``fill("topic", 3)``: make the topic, a queue on each broker, and send it messages to read."""

    def make(topic, count=1):
        admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
        results = [producer.send(Message(topic, b"%d" % number)) for number in range(count)]
        await_readable(admin, results)
        return topic

    return make


def topics_of(frame):
    return sorted({row.topic for row in frame.select("topic").distinct().collect()})


def test_several_topics_are_read_together(read, fill, prefix):
    names = [fill(f"{prefix}-{letter}", 2) for letter in "ab"]

    assert read(topics=",".join(names)).groupBy("topic").count().count() == 2


def test_a_pattern_reads_every_topic_it_matches_whole(read, fill, prefix):
    for name in ("a", "b", "ab"):
        fill(f"{prefix}-{name}")
    fill(f"%DLQ%{prefix}-a")

    assert topics_of(read(topicPattern=f"{prefix}-.")) == [f"{prefix}-a", f"{prefix}-b"]
    assert topics_of(read(topicPattern=f"%DLQ%{prefix}.*")) == [f"%DLQ%{prefix}-a"]


def test_a_pattern_that_matches_nothing_is_an_error(read, prefix):
    text = error_of(lambda: read(topicPattern=f"{prefix}.*").count())

    assert f"option 'topicPattern' = '{prefix}.*': no topic matches" in text


def test_a_pattern_for_everything_takes_no_topic_of_the_system(fill, local_cluster, prefix):
    fill(prefix)
    options = read_of(nameServer=local_cluster.name_server, topic=None, topicPattern=".*")

    topics = Lookup(options).topics()

    assert prefix in topics
    assert {"TBW102", "broker-a", "broker-b", "RMQ_SYS_TRANS_HALF_TOPIC"}.isdisjoint(topics)


@pytest.mark.parametrize("kind", ["%RETRY%", "%DLQ%"])
def test_retry_and_dead_letter_topics_are_read_by_name(read, fill, prefix, kind):
    assert topics_of(read(topic=fill(kind + prefix, 3))) == [kind + prefix]


def test_assigned_queues_are_read_and_no_others(read, fill, prefix):
    first, second = fill(f"{prefix}-a", 8), fill(f"{prefix}-b", 8)
    assign = json.dumps({first: {"broker-a": [0]}, second: {"broker-b": [0]}})

    rows = read(assign=assign).select("topic", "brokerName").distinct().collect()

    assert sorted(map(tuple, rows)) == [(first, "broker-a"), (second, "broker-b")]


def test_offsets_of_assigned_queues_need_no_others(read, fill, prefix):
    topic = fill(prefix, 8)
    options = {
        "assign": json.dumps({topic: {"broker-a": [0]}}),
        "startingOffsets": json.dumps({topic: {"broker-a": {"0": 1}}}),
    }

    rows = read(**options).collect()

    assert rows
    assert {row.brokerName for row in rows} == {"broker-a"}
    assert min(row.queueOffset for row in rows) == 1


def test_a_light_queue_is_refused_by_name(read):
    assert "topic '%LMQ%parent$child' is a light queue" in error_of(
        lambda: read(topic="%LMQ%parent$child").count()
    )


def test_a_static_topic_is_refused_by_name(local_cluster, fill, prefix, monkeypatch):
    """Its queues are logic queues of a broker that is none."""
    topic = fill(prefix)
    lookup = Lookup(read_of(nameServer=local_cluster.name_server, topic=topic))
    queues = lookup.queues()
    logic = [type(queue)(topic, "__syslo__global__", queue.queue_id) for queue in queues]

    async def fetch(*_):
        return logic

    monkeypatch.setattr(aio.Admin, "fetch_subscribe_queues", fetch)

    with pytest.raises(ConfigError, match=f"topic '{topic}' is a static topic"):
        lookup.queues()


def test_a_view_in_sql(spark, local_cluster, fill, prefix):
    topic = fill(prefix, 3)
    spark.sql(
        f"CREATE OR REPLACE TEMP VIEW messages USING rocketmq "
        f"OPTIONS (nameServer '{local_cluster.name_server}', topic '{topic}')"
    )

    assert spark.sql("SELECT count(*) AS n FROM messages").first().n == 3
    assert spark.sql("SELECT count(*) AS n FROM messages WHERE queueOffset = 0").first().n == 2


def test_inserts_in_sql_name_their_columns_with_the_view(spark, local_cluster, fill, prefix, read):
    topic = fill(prefix, 3)
    spark.sql(
        f"CREATE OR REPLACE TEMP VIEW sink (body BINARY, tags STRING) USING rocketmq "
        f"OPTIONS (nameServer '{local_cluster.name_server}', topic '{topic}')"
    )

    spark.sql("INSERT INTO sink SELECT encode('inserted', 'utf-8'), 'sql'")

    assert [bytes(row.body) for row in read(topic=topic, tags="sql").collect()] == [b"inserted"]
