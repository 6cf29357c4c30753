"""JSON orders into totals of each minute: a topic to a topic, each total once, whatever is killed.

    python examples/order_totals.py --name-server 127.0.0.1:9876 --folder order-totals

Reads Orders, writes OrderTotals, and puts what is no order into OrdersRejected. Start it again with the same
folder after a crash: it goes on where it was. ``--until-now`` ends with what is stored, as a job by the hour.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

ORDER = "id BIGINT, item STRING, price DECIMAL(10, 2), created TIMESTAMP"
IS_ORDER = "order.id IS NOT NULL AND order.item IS NOT NULL AND order.created IS NOT NULL"


def with_orders(messages: DataFrame) -> DataFrame:
    """Add the column ``order``: a body as a struct, with nulls for what it lacks."""
    return messages.withColumn("order", F.from_json(messages.body.cast("string"), ORDER))


def totals_of(orders: DataFrame) -> DataFrame:
    """Return number and sum of the orders of each item and minute; orders may come a minute late."""
    per_minute = orders.withWatermark("created", "1 minute").groupBy(F.window("created", "1 minute"), "item")
    totals = per_minute.agg(F.count("*").alias("orders"), F.sum("price").alias("total"))
    return totals.select(F.col("window.start").alias("minute"), "item", "orders", "total")


def as_messages(totals: DataFrame) -> DataFrame:
    """Return totals as rows to write: JSON bodies, and the totals of an item in one queue, in their order."""
    body = F.to_json(F.struct("minute", "item", "orders", "total"))
    return totals.select(body.alias("body"), F.col("item").alias("keys"), F.col("item").alias("shardingKey"))


def start(rows: DataFrame, target: dict[str, str], checkpoint: Path, *, until_now: bool) -> StreamingQuery:
    """Write a stream to a topic, each row once."""
    writer = rows.writeStream.format("rocketmq").options(**target, delivery="exactlyOnce")
    writer = writer.option("checkpointLocation", str(checkpoint)).outputMode("append")
    if until_now:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime="2 seconds").start()


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    folder: Annotated[Path, typer.Option(help="Checkpoints: a lasting place.")],
    orders: Annotated[str, typer.Option(help="The topic to read.")] = "Orders",
    totals: Annotated[str, typer.Option(help="The topic of the totals.")] = "OrderTotals",
    rejected: Annotated[str, typer.Option(help="The topic of what is no order.")] = "OrdersRejected",
    until_now: Annotated[bool, typer.Option("--until-now", help="End with what is stored now.")] = False,
) -> None:
    """Run both queries until one fails or, with --until-now, both have ended. The topics must exist."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    source = {"nameServer": name_server, "topic": orders, "startingOffsets": "earliest"}
    messages = with_orders(spark.readStream.format("rocketmq").options(**source).load())
    good = messages.where(IS_ORDER).select("order.*")
    bad = messages.where(f"NOT ({IS_ORDER})").select("body", "keys", "tags")
    sums = as_messages(totals_of(good))
    to_totals, to_rejected = ({"nameServer": name_server, "topic": topic} for topic in (totals, rejected))
    queries = [
        start(sums, to_totals, folder / "totals", until_now=until_now),
        start(bad, to_rejected, folder / "rejected", until_now=until_now),
    ]
    print("running", flush=True)
    if until_now:
        for query in queries:
            query.awaitTermination()
    else:
        spark.streams.awaitAnyTermination()  # raises its error
    spark.stop()


if __name__ == "__main__":
    typer.run(main)
