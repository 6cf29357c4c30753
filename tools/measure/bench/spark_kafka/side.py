"""One side of the table: ``python -m tools.measure.bench.spark_kafka.side rocketmq|kafka ADDRESS JARS``."""

import sys
import time
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tools.measure.bench.ours_spark import session
from tools.measure.bench.program import Result, Work, serve


class Side(ABC):
    """A session, made at the first work, and what it does with one of the two formats.

    Every row has a body, a key and two more properties, so that both carry the same; every read gives them.
    """

    format: ClassVar[str]

    def __init__(self, address: str, jars: str = "") -> None:
        self._address = address
        self._jars = jars

    @cached_property
    def spark(self) -> SparkSession:
        """The session; nothing has used the format in it."""
        return session(**({"spark.driver.extraClassPath": self._jars} if self._jars else {}))

    def start(self, _: Work) -> Result:
        """Make the session."""
        began = time.perf_counter()
        assert self.spark
        return {"count": 0, "seconds": time.perf_counter() - began}

    def count(self, work: Work) -> Result:
        """Count a topic's rows."""
        began = time.perf_counter()
        count = self._read(work["topic"]).count()
        return {"count": count, "seconds": time.perf_counter() - began}

    def read(self, work: Work) -> Result:
        """Read a topic into the sink noop."""
        seen = Observation()
        began = time.perf_counter()
        rows = self._read(work["topic"]).observe(seen, F.count(F.lit(1)).alias("rows"))
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

    def _read(self, topic: str) -> DataFrame:
        return self.spark.read.format(self.format).options(**self._read_from(topic)).load()

    @abstractmethod
    def stored(self, topic: str) -> int:
        """Return the sum of a topic's largest offsets."""

    def more(self, work: Work) -> dict[str, Any]:
        """Return further options of a write."""
        return {}

    @abstractmethod
    def _read_from(self, topic: str) -> dict[str, Any]: ...

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

    def _read_from(self, topic: str) -> dict[str, Any]:
        return {"nameServer": self._address, "topic": topic}

    _written_to = _read_from

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

    def _read_from(self, topic: str) -> dict[str, Any]:
        return {"kafka.bootstrap.servers": self._address, "subscribe": topic, "includeHeaders": True}

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


_SIDES = {side.format: side for side in (RocketMQ, Kafka)}

if __name__ == "__main__":
    side = _SIDES[sys.argv[1]](*sys.argv[2:])
    serve({"start": side.start, "count": side.count, "read": side.read, "write": side.write})
    side.spark.stop()
