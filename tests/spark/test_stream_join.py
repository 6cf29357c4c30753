"""A topic beside a stream: frozen in a join with a batch frame, complete in the two ways of docs/spark.md."""

import pytest
from pyspark.sql.functions import expr

from rmqtools import Message
from tests.docs.blocks import blocks_of
from tests.spark.streams import await_true
from tests.support.patience import PATIENCE, PATIENT_WRITE

FOREACH_BATCH, TWO_STREAMS = (
    block.text for block in blocks_of("spark.md") if "customer_topic" in block.text and "query" in block.text
)


@pytest.fixture
def names(spark, local_cluster, make_topic, tmp_path):
    """The names that the examples use."""
    server = {"nameServer": local_cluster.name_server}
    orders, customers, joined = (server | {"topic": make_topic(queues=1)} for _ in range(3))
    return {
        "spark": spark,
        "order_topic": orders | {"startingOffsets": "earliest", "pollInterval": "200ms"},
        "customer_topic": customers,
        "joined_topic": joined | PATIENT_WRITE,
        "checkpoints": str(tmp_path),
    }


@pytest.fixture
def send(names, producer, admin):
    """``send("order", "7")``: one more message with that key, which can be read."""

    def one(name, key):
        message = Message(names[f"{name}_topic"]["topic"], f"{name} {key}".encode(), keys=key)
        result = producer.send(message)
        admin.await_readable({result.queue: result.queue_offset + 1}, timeout=PATIENCE)

    return one


@pytest.fixture
def joined(names, read_rows):
    """``joined()``: bodies of the joined topic, sorted."""
    topic = names["joined_topic"]["topic"]
    return lambda: sorted(row.body.decode() for row in read_rows(topic=topic))


@pytest.mark.slow  # what Spark does; the two ways that work run
def test_a_topic_on_the_batch_side_is_frozen_when_the_query_starts(spark, names, send):
    send("customer", "1")
    send("order", "1")
    customers = spark.read.format("rocketmq").options(**names["customer_topic"]).load()
    orders = spark.readStream.format("rocketmq").options(**names["order_topic"]).load()
    rows = orders.join(customers.select("keys"), "keys").select(expr("string(body)"))
    query = rows.writeStream.format("memory").queryName("frozen_join").start()
    query.processAllAvailable()
    send("customer", "2")
    send("order", "2")

    query.processAllAvailable()
    query.stop()

    assert [row.body for row in spark.table("frozen_join").collect()] == ["order 1"]


@pytest.mark.slow  # a recipe; the trap beside it runs in make test
def test_a_load_in_each_micro_batch_joins_with_what_is_stored_then(names, send, joined):
    send("customer", "1")
    send("order", "1")
    exec(FOREACH_BATCH, names)
    query = names["query"]
    await_true(lambda: joined() == ["order 1 of customer 1"] or query.exception(), "the first row")
    send("customer", "2")
    send("order", "2")

    query.processAllAvailable()
    query.stop()

    assert joined() == ["order 1 of customer 1", "order 2 of customer 2"]


@pytest.mark.slow  # a join of streams keeps state, which takes a while to open
def test_a_join_of_two_streams_finds_partners_that_come_later(names, send, joined):
    names["customer_topic"] |= {"startingOffsets": "earliest", "pollInterval": "200ms"}
    send("customer", "1")
    send("order", "1")
    exec(TWO_STREAMS, names)
    query = names["query"]
    await_true(lambda: joined() == ["order 1 of customer 1"] or query.exception(), "the first row")
    send("order", "2")
    query.processAllAvailable()
    assert joined() == ["order 1 of customer 1"]
    send("customer", "2")

    query.processAllAvailable()
    query.stop()

    assert joined() == ["order 1 of customer 1", "order 2 of customer 2"]
