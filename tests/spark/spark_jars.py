"""Jars of others for Spark, fetched once and checked, as those of the servers are."""

from collections.abc import Iterable
from typing import Final

from rmqtools.cluster import ensure_jars
from rmqtools.cluster.lock import LockedJar

AVRO: Final = (
    "org.apache.spark:spark-avro_2.13:4.2.0 4c186cedc03cbe4ee356a94b32232b347ef48611c3209400b3a77e4fe4abff4f",
)
DELTA: Final = (
    "io.delta:delta-spark_4.1_2.13:4.1.0 9b05d7a82196ee1f1073733a45a2faae59161e52b86ae918fe6742fad6eaf036",
    "io.delta:delta-storage:4.1.0 6d0520ffcc35b582369f92c23fa24e14a5bb935cf6e31ed7f47c5046ae17cb25",
)
"""For PySpark 4.1, which has all else that Delta needs."""

ICEBERG: Final = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0 "
    "d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242",
)
"""For PySpark 4.1, too."""


def class_path(jars: Iterable[str]) -> str:
    """Fetch jars that are missing; return their files as Java's class path."""
    return ":".join(map(str, ensure_jars([LockedJar.parse(jar) for jar in jars])))
