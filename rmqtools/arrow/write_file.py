"""Writes messages to a Parquet file."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

import pyarrow as pa
import pyarrow.parquet

from rmqtools.arrow.rows_to_batch import rows_to_batch
from rmqtools.arrow.schema import MESSAGE_SCHEMA
from rmqtools.errors import ConfigError
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue

_ROWS: Final = 10_000  # of a row group, at least, except the last one's


class ParquetFile:
    """A Parquet file with the columns of ``MESSAGE_SCHEMA``. It can be read only after :meth:`close`.

    Args:
        target: a path, whose file is replaced, or an open binary file.

    Raises:
        ConfigError: the file cannot be written.
    """

    def __init__(self, target: Path | BinaryIO) -> None:
        self._waiting: list[MessageExt] = []
        try:
            self._writer = pa.parquet.ParquetWriter(target, MESSAGE_SCHEMA)
        except OSError as error:
            raise ConfigError(f"{target} cannot be written: {error}") from error

    def write(self, messages: Sequence[MessageExt]) -> None:
        """Add messages; they are kept in memory until a row group is full."""
        self._waiting += messages
        if len(self._waiting) >= _ROWS:
            self._write_group()

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        if self._waiting:
            self._write_group()
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_group(self) -> None:
        messages, self._waiting = self._waiting, []
        by_queue = groupby(messages, lambda m: MessageQueue(m.topic, m.broker_name, m.queue_id))
        batches = [rows_to_batch(list(part), queue) for queue, part in by_queue]
        self._writer.write_table(pa.Table.from_batches(batches, MESSAGE_SCHEMA))
