"""A source of numbered rows that lets whoever reads them do harm meanwhile; see ``paced_write``."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

TASKS = 2
_ROWS_AT_ONCE = 1000
_SLOWLY, _PAUSE = 8192, 0.02  # bytes at a time, since Spark's pipes hand on 64 KB; and seconds between them
_DEADLINE = 240.0  # seconds for what was waited for


class PacedSource(DataSource):
    """``format("paced")``: option ``rows``, ``rowBytes``, ``folder``."""

    @classmethod
    def name(cls) -> str:
        return "paced"

    def schema(self) -> str:
        return "body string"

    def reader(self, schema: object) -> "PacedReader":
        given = self.options
        return PacedReader(int(given["rows"]) // TASKS, int(given["rowBytes"]), Path(given["folder"]))


class PacedReader(DataSourceReader):
    """Each task gives its share; at a third and at two thirds of it it goes on slowly until told."""

    def __init__(self, share: int, row_bytes: int, folder: Path) -> None:
        self._share = share
        self._row_bytes = row_bytes
        self._folder = folder

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number * self._share) for number in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        begin, end = partition.value, partition.value + self._share
        for mark in (1, 2):
            until = partition.value + self._share * mark // 3
            yield from self._rows(begin, until)
            begin = until
            while begin < end and not self._may_go(mark):
                until = min(end, begin + _SLOWLY // self._row_bytes)
                yield from self._rows(begin, until)
                begin = until
                time.sleep(_PAUSE)
        yield from self._rows(begin, end)
        self._await_both()

    def _rows(self, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        for first in range(begin, end, _ROWS_AT_ONCE):
            numbers = range(first, min(first + _ROWS_AT_ONCE, end))
            yield pa.record_batch({"body": pa.array([str(n).rjust(self._row_bytes) for n in numbers])})

    def _may_go(self, mark: int) -> bool:
        (self._folder / f"reached-{mark}").touch()
        return (self._folder / f"go-{mark}").exists()

    def _await_both(self) -> None:
        """Rows are out, and harm is still to be done."""
        deadline = time.monotonic() + _DEADLINE
        while not (self._may_go(1) and self._may_go(2)):
            assert time.monotonic() < deadline, "nobody said go"
            time.sleep(_PAUSE)
