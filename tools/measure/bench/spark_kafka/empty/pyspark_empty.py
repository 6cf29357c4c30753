"""A data source without a server: its first action takes what Spark needs for any source in Python."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

_PARTITIONS = 8  # as many as the other sides' topics have queues


class DefaultSource(DataSource):  # type: ignore[misc]
    """Gives the option ``rows``; the name is the one that Spark looks for."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "empty"

    def schema(self) -> str:
        """Return the columns."""
        return "body binary"

    def reader(self, schema: StructType) -> "Reader":
        """Return a reader."""
        return Reader(int(self.options["rows"]))


class Reader(DataSourceReader):  # type: ignore[misc]
    """Makes rows without a body."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def partitions(self) -> list[InputPartition]:
        """Return as many as a topic has queues."""
        return [InputPartition(number) for number in range(_PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a partition's share."""
        rows = len(range(partition.value, self._rows, _PARTITIONS))
        yield pa.RecordBatch.from_arrays([pa.nulls(rows, pa.binary())], ["body"])
