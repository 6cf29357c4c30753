"""Client ids for option ``readerIds``: one for each task slot of the executors."""

import socket
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from rmqtools.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reader_ids(spark: "SparkSession") -> list[str]:
    """Return ``ADDRESS@reader-k`` for every task slot, by address; in local mode, all have the driver's.

    Raises:
        ConfigError: the session does not know its executors (Spark Connect).
    """
    hosts = [socket.gethostbyname(host) for host, cores in _executors(spark) for _ in range(cores)]
    return [f"{address}@reader-{number}" for number, address in enumerate(sorted(hosts))]


def _executors(spark: "SparkSession") -> list[tuple[str, int]]:
    """Host and cores of every executor; in local mode the driver's."""
    found: Any = _context(spark)._jsc.sc().statusStore().executorList(True)
    summaries = [found.apply(index) for index in range(found.size())]
    others = [one for one in summaries if one.id() != "driver"]
    return [(one.hostPort().rpartition(":")[0], one.totalCores()) for one in others or summaries]


def _context(spark: "SparkSession") -> Any:
    try:
        return spark.sparkContext
    except PySparkException as error:
        raise ConfigError(
            "this session does not know its executors (Spark Connect): give option 'readerIds' yourself, "
            "e.g. 10.0.0.1@reader-0,10.0.0.2@reader-1"
        ) from error
