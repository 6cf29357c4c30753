"""Reading and writing as a user does: by format name, nothing registered."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqtools.cluster import LocalCluster


@pytest.fixture
def read(spark: "SparkSession", local_cluster: "LocalCluster") -> "Callable[..., DataFrame]":
    """``read(topic="T", minPartitions=4)``."""

    def load(**options: Any) -> "DataFrame":
        return (
            spark.read.format("rocketmq")
            .options(**{"nameServer": local_cluster.name_server, **options})
            .load()
        )

    return load


@pytest.fixture
def write(spark: "SparkSession", local_cluster: "LocalCluster") -> Callable[..., None]:
    """``write(rows, "body binary, tags string", topic="T")``; one task, so the order of the rows is kept."""

    def save(rows: Iterable[tuple[Any, ...]], schema: str, *, mode: str = "append", **options: Any) -> None:
        frame = spark.createDataFrame(list(rows), schema).coalesce(1)
        settings = {"nameServer": local_cluster.name_server, **options}
        frame.write.format("rocketmq").options(**settings).mode(mode).save()

    return save
