"""Tables of Spark's catalog: each way to make or use one says at once that Spark passes it no options."""

import pytest

from tests.spark.streams import error_of
from tests.spark.test_errors_first_line import top
from tests.support.patience import PATIENCE

REMEDY = "CREATE TEMPORARY VIEW name USING rocketmq OPTIONS (nameServer 'host:port', topic 'Orders')"
ROW = "SELECT CAST('a' AS BINARY) AS body"


@pytest.fixture
def options(local_cluster, make_topic):
    """The options of a topic with one queue on each of two brokers."""
    return {"nameServer": local_cluster.name_server, "topic": make_topic(queues=1)}


@pytest.fixture
def sql_options(options):
    return "OPTIONS (" + ", ".join(f"{name} '{text}'" for name, text in options.items()) + ")"


@pytest.fixture
def table(spark, sql_options, tmp_path):
    """A table that Spark makes without a question to this source, as columns are given."""
    spark.sql(f"CREATE TABLE of_rocketmq (body BINARY) USING rocketmq {sql_options} LOCATION '{tmp_path}/t'")
    yield "of_rocketmq"
    spark.sql("DROP TABLE of_rocketmq")


def test_a_table_without_columns_is_not_made(spark, sql_options):
    made = error_of(lambda: spark.sql(f"CREATE TABLE never_made USING rocketmq {sql_options}"))
    bare = error_of(lambda: spark.sql("CREATE TABLE never_made USING rocketmq"))
    api = error_of(lambda: spark.catalog.createTable("never_made", source="rocketmq", topic="T"))

    assert [text for text in (made, bare, api) if "no catalog tables: Spark passes" not in top(text)] == []
    assert REMEDY in top(made)


def test_a_table_with_columns_can_neither_be_read_nor_written(spark, table, tmp_path):
    def read_as_stream():
        writer = spark.readStream.table(table).writeStream.format("noop")
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination(PATIENCE)

    texts = [
        error_of(lambda: spark.table(table).count()),
        error_of(lambda: spark.sql(f"INSERT INTO {table} {ROW}")),
        error_of(lambda: spark.sql(ROW).writeTo(table).append()),
        error_of(read_as_stream),
    ]

    assert [text for text in texts if REMEDY not in top(text)] == []


def test_a_table_made_of_a_query_is_refused_before_a_row_is_sent(spark, sql_options, tmp_path):
    made = f"CREATE TABLE never_made USING rocketmq {sql_options} LOCATION '{tmp_path}/t' AS {ROW}"

    assert REMEDY in top(error_of(lambda: spark.sql(made)))


def test_a_saved_table_has_its_rows_in_the_topic_but_cannot_be_read(spark, read_rows, options, tmp_path):
    writer = spark.sql(ROW).write.format("rocketmq").options(**options, path=str(tmp_path / "t"))
    writer.mode("append").saveAsTable("saved")
    try:
        assert REMEDY in top(error_of(lambda: spark.table("saved").count()))
    finally:
        spark.sql("DROP TABLE saved")
    assert [row.body for row in read_rows(topic=options["topic"])] == [b"a"]


def test_a_temporary_view_can_be_written_and_read(spark, sql_options):
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW of_topic USING rocketmq {sql_options}")
    spark.sql(f"INSERT INTO of_topic (body) {ROW}")

    assert [bytes(row.body) for row in spark.sql("SELECT body FROM of_topic").collect()] == [b"a"]
