"""The recipes of docs/spark-recipes.md that need jars, as a program.

python -m tests.spark.recipes bodies '{"nameServer": ...}' TOPICS...
python -m tests.spark.recipes delta FOLDER '{"nameServer": ..., "topic": ...}'  # or iceberg
python -m tests.spark.recipes both FOLDER '{"nameServer": ..., "topic": ...}' TARGET

``bodies`` writes three rows to each of three topics, reads them by the recipes, and prints them as JSON.
``delta`` and ``iceberg`` stream the topic into a table in FOLDER until they are killed. If there is
FOLDER/last, they end with what is stored, and print the number of rows, and the number of different places
they were read from. ``both`` streams the topic into FOLDER/table and the topic TARGET, does its last
micro-batch again, and prints the numbers of rows in both.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import struct, to_json

from tests.docs.blocks import blocks_of

PACKAGES = re.compile(r"""\.config\(\s*"spark\.jars\.packages", "[\w.:-]+"\s*\)""")


def recipe(word: str) -> str:
    """The block of the page that holds a word."""
    (text,) = (block.text for block in blocks_of("spark-recipes.md") if word in block.text)
    return text


def bodies(given: str, *topics: str) -> None:
    from orders_pb2 import Order  # type: ignore[import-not-found]  # the test writes it
    from pyspark.sql.avro.functions import to_avro

    spark = SparkSession.builder.getOrCreate()
    rows = spark.range(1, 4, 1, 1).selectExpr("id", "id * 1.5D AS amount", "string(id) AS keys")
    orders = [(Order(id=n, amount=n * 1.5).SerializeToString(), str(n)) for n in range(1, 4)]
    written = {
        "from_json": rows.select("keys", to_json(struct("id", "amount")).alias("body")),
        "from_avro": rows.select("keys", to_avro(struct("id", "amount")).alias("body")),
        "orders_pb2": spark.createDataFrame(orders, "body BINARY, keys STRING").coalesce(1),
    }
    names: dict[str, Any] = {}
    for (word, frame), topic in zip(written.items(), topics, strict=True):
        options = json.loads(given) | {"topic": topic}
        frame.write.format("rocketmq").options(**options).mode("append").save()
        names["orders"] = spark.read.format("rocketmq").options(**options).load()
        exec(recipe(word), names)
    print(json.dumps([values(names[f"{name}_rows"]) for name in ("json", "avro", "protobuf")]))


def values(frame: DataFrame) -> list[list[Any]]:
    return sorted([*row] for row in frame.select("keys", "id", "amount").collect())


def delta(folder: str, given: str) -> None:
    to_table(folder, given, "io.delta", lambda spark: spark.read.format("delta").load(f"{folder}/table"))


def iceberg(folder: str, given: str) -> None:
    to_table(folder, given, "org.apache.iceberg", lambda spark: spark.table("lake.db.messages"))


def to_table(folder: str, given: str, word: str, read: Callable[[SparkSession], DataFrame]) -> None:
    """Run the recipe that holds a word; ``read`` reads its table."""
    text, count = PACKAGES.subn("", recipe(word))  # the test has them on the class path
    assert count == 1
    names: dict[str, Any] = {"source": json.loads(given), "table": f"{folder}/table"}
    exec(text, names)
    spark, query = names["spark"], names["query"]
    if not Path(folder, "last").exists():
        query.awaitTermination()
    query.processAllAvailable()
    query.stop()
    rows = read(spark)
    places = rows.select("brokerName", "queueId", "queueOffset").distinct()
    print(json.dumps([rows.count(), places.count()]))


def both(folder: str, given: str, target: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    options, table = json.loads(given), f"{folder}/table"
    text = recipe("txnAppId").replace("127.0.0.1:9876", options["nameServer"]).replace("OrderTotals", target)
    names: dict[str, Any] = {"table": table}
    exec(text, names)
    commits = Path(folder, "checkpoint", "commits")
    for _ in range(2):
        stream = spark.readStream.format("rocketmq").options(**options, startingOffsets="earliest").load()
        query = stream.selectExpr("CAST(body AS STRING) AS text").writeStream.foreachBatch(names["store"])
        query = query.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
        query.start().awaitTermination()
        last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
        for name in (f"{last}", f".{last}.crc"):
            (commits / name).unlink(missing_ok=True)
    rows = spark.read.format("rocketmq").options(**options | {"topic": target}).load()
    print(json.dumps([spark.read.format("delta").load(table).count(), rows.count()]))


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    programs: tuple[Callable[..., None], ...] = (bodies, delta, iceberg, both)
    {one.__name__: one for one in programs}[what](*arguments)
