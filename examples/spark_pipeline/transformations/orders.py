"""Read a topic, and write its paid orders to another topic."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

SERVER = {"nameServer": os.environ["NAMESRV_ADDR"]}
SOURCE = {**SERVER, "topic": os.environ.get("TOPIC", "Example"), "startingOffsets": "earliest"}
TARGET = {**SERVER, "topic": os.environ.get("TARGET", "PaidOrders")}


@dp.temporary_view
def orders() -> DataFrame:
    """All messages of the topic."""
    spark = SparkSession.active()
    return spark.readStream.format("rocketmq").options(**SOURCE).load()


dp.create_sink("paid_orders", format="rocketmq", options=TARGET)


@dp.append_flow(target="paid_orders")
def paid() -> DataFrame:
    """Messages with the tag ``paid``."""
    rows = SparkSession.active().readStream.table("orders")
    return rows.where("tags = 'paid'").select("body", "tags", "keys")
