"""A view shows what was stored when it was planned, until it is refreshed."""

import pytest

import spark_connector
from rmqtools import Message
from rmqtools.errors import ConfigError
from tests.support.patience import PATIENCE


@pytest.fixture
def send(producer, admin, make_topic):
    """``send()``: one more message that can be read; returns the topic."""
    topic = make_topic(queues=1)

    def one():
        result = producer.send(Message(topic, b"x"))
        admin.await_readable({result.queue: result.queue_offset + 1}, timeout=PATIENCE)
        return topic

    return one


def test_a_frozen_view_is_made_anew_with_its_options_and_columns(spark, read, send):
    read(topic=send(), columns="queueOffset,body").createOrReplaceTempView("frozen")
    assert spark.table("frozen").count() == 1
    send()
    assert spark.sql("SELECT * FROM frozen").count() == 1

    spark_connector.refresh(spark, "frozen")

    assert spark.sql("SELECT * FROM frozen").count() == 2
    assert spark.table("frozen").columns == ["queueOffset", "body"]


def test_a_view_made_in_sql_is_made_anew(spark, local_cluster, send):
    options = f"nameServer '{local_cluster.name_server}', topic '{send()}'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW frozen USING rocketmq OPTIONS ({options})")
    assert spark.table("frozen").count() == 1
    send()

    spark_connector.refresh(spark, "FROZEN")

    assert spark.table("frozen").count() == 2


def test_what_cannot_be_refreshed_is_named_with_a_remedy(spark, read, send):
    frame = read(topic=send())
    frame.createOrReplaceTempView("whole")
    frame.filter("queueOffset > 0").createOrReplaceTempView("filtered")
    spark.range(3).createOrReplaceTempView("numbers")

    for view, says in {
        "hole": r"no temporary view 'hole' \(did you mean 'whole'\?\)",
        "filtered": "'filtered' selects or changes what load",
        "numbers": "'numbers' is not one of format rocketmq",
    }.items():
        with pytest.raises(ConfigError, match=says):
            spark_connector.refresh(spark, view)
