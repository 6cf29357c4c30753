"""One side: ``python -m tools.measure.bench.spark_kafka.side rocketmq|kafka|empty ADDRESS JARS``."""

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tools.measure.bench.ours_spark import session
from tools.measure.bench.program import Result, Work, serve


class Format(ABC):
    """A session, made at the first work, and the count of a topic in one format."""

    format: ClassVar[str]

    def __init__(self, address: str, jars: str = "") -> None:
        self._address = address
        self._jars = jars

    @cached_property
    def spark(self) -> SparkSession:
        """The session; nothing has used the format in it."""
        return session(**({"spark.driver.extraClassPath": self._jars} if self._jars else {}))

    def works(self) -> dict[str, Callable[[Work], Result]]:
        """Return what can be asked for."""
        return {"start": self.start, "count": self.count}

    def start(self, _: Work) -> Result:
        """Make the session."""
        began = time.perf_counter()
        assert self.spark
        return {"count": 0, "seconds": time.perf_counter() - began}

    def count(self, work: Work) -> Result:
        """Count a topic's rows."""
        began = time.perf_counter()
        count = self._read(work).count()
        return {"count": count, "seconds": time.perf_counter() - began}

    def _read(self, work: Work) -> DataFrame:
        return self.spark.read.format(self.format).options(**self._read_from(work)).load()

    @abstractmethod
    def _read_from(self, work: Work) -> dict[str, Any]: ...


class Side(Format):
    """Reads and writes of a session in the format of a broker.

    Every row has a body, a key and two more properties, so that both carry the same; every read gives them.
    """

    def works(self) -> dict[str, Callable[[Work], Result]]:
        """Return what can be asked for."""
        return super().works() | {"read": self.read, "write": self.write}

    def read(self, work: Work) -> Result:
        """Read a topic into the sink noop."""
        seen = Observation()
        began = time.perf_counter()
        rows = self._read(work).observe(seen, F.count(F.lit(1)).alias("rows"))
        rows.write.format("noop").mode("overwrite").save()
        return {"seconds": time.perf_counter() - began, "count": seen.get["rows"]}

    def write(self, work: Work) -> Result:
        """Rows to a topic; those that the broker has."""
        rows, topic = self._rows(int(work["total"]), int(work["size"])), work["topic"]
        before = self.stored(topic)
        began = time.perf_counter()
        options = self._written_to(topic) | self.more(work)
        rows.write.format(self.format).options(**options).mode("append").save()
        seconds = time.perf_counter() - began
        return {"count": self.stored(topic) - before, "seconds": seconds}

    @abstractmethod
    def stored(self, topic: str) -> int:
        """Return the sum of a topic's largest offsets."""

    def more(self, work: Work) -> dict[str, Any]:
        """Return further options of a write."""
        return {}

    @abstractmethod
    def _written_to(self, topic: str) -> dict[str, Any]: ...

    @abstractmethod
    def _rows(self, count: int, size: int) -> DataFrame: ...


class RocketMQ(Side):
    """Ours."""

    format = "rocketmq"

    def more(self, work: Work) -> dict[str, Any]:
        """Return the setting of batches for topics that keep them."""
        return {"rocketmq.inner_batches": "true"} if work["inner_batches"] == "True" else {}

    def stored(self, topic: str) -> int:
        """Return the sum of the brokers' offsets."""
        from rmqtools import Admin, ClientConfig  # a user's driver need not import it

        with Admin(ClientConfig(name_server=self._address)) as admin:
            return sum(admin.max_offset(queue) for queue in admin.fetch_subscribe_queues(topic))

    def _read_from(self, work: Work) -> dict[str, Any]:
        return self._written_to(work["topic"])

    def _written_to(self, topic: str) -> dict[str, Any]:
        return {"nameServer": self._address, "topic": topic}

    def _rows(self, count: int, size: int) -> DataFrame:
        return self.spark.range(0, count, 1, 2).select(
            F.lit(bytearray(b"x" * size)).alias("body"),
            F.lit("TagA").alias("tags"),
            F.concat(F.lit("k"), F.col("id").cast("string")).alias("keys"),
            F.create_map(F.lit("src"), F.lit("bench")).alias("properties"),
        )


class Kafka(Side):
    """Spark's own."""

    format = "kafka"

    def stored(self, topic: str) -> int:
        """Return the sum of the ends of all partitions."""
        jvm = self.spark.sparkContext._jvm
        assert jvm is not None
        properties = jvm.java.util.Properties()
        properties.put("bootstrap.servers", self._address)
        deserializer = jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
        consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
            properties, deserializer(), deserializer()
        )
        try:
            partitions = jvm.java.util.ArrayList()
            for one in consumer.partitionsFor(topic):
                partitions.add(jvm.org.apache.kafka.common.TopicPartition(topic, one.partition()))
            return sum(consumer.endOffsets(partitions).values())
        finally:
            consumer.close()

    def _read_from(self, work: Work) -> dict[str, Any]:
        return {"kafka.bootstrap.servers": self._address, "subscribe": work["topic"], "includeHeaders": True}

    def _written_to(self, topic: str) -> dict[str, Any]:
        return {"kafka.bootstrap.servers": self._address, "topic": topic, "includeHeaders": True}

    def _rows(self, count: int, size: int) -> DataFrame:
        headers = [
            F.struct(F.lit(name).alias("key"), F.lit(bytearray(value)).alias("value"))
            for name, value in (("tags", b"TagA"), ("src", b"bench"))
        ]
        return self.spark.range(0, count, 1, 2).select(
            F.lit(bytearray(b"x" * size)).alias("value"),
            F.concat(F.lit("k"), F.col("id").cast("string")).alias("key"),
            F.array(*headers).alias("headers"),
        )


class Empty(Format):
    """A source in Python without a server: what Spark itself takes."""

    format = "empty"

    @cached_property
    def spark(self) -> SparkSession:
        """A session whose Python processes find the source as they find ours."""
        folder = str(Path(__file__).with_name("empty"))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        return session()

    def _read_from(self, work: Work) -> dict[str, Any]:
        return {"rows": work["total"]}


_SIDES = {side.format: side for side in (RocketMQ, Kafka, Empty)}

if __name__ == "__main__":
    side = _SIDES[sys.argv[1]](*sys.argv[2:])
    serve(side.works())
    side.spark.stop()
