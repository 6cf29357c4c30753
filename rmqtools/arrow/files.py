"""Reads the rows of Parquet and CSV files to send them, and reads and writes files of messages."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rmqtools.arrow.rows_to_batch import body_or_none, rows_to_batch
from rmqtools.arrow.schema import MESSAGE_SCHEMA, WRITE_COLUMNS
from rmqtools.errors import ConfigError
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.unknown_name import unknown_name

_ROWS: Final = (
    10_000  # of a batch that is read, as send_batches takes them, and of a row group that is written
)
_GROUP_BYTES: Final = 64 * 1024 * 1024  # of the bodies of a row group that is written, about
_BLOCK_BYTES: Final = 16 * 1024 * 1024  # of a CSV file: no row may be longer, and bodies may have 4 MiB


def read_file(path: Path, form: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, as columns of ``WRITE_COLUMNS``; ``form``: ``parquet`` or ``csv``.

    A CSV file has a line of column names; bodies are its texts in UTF-8, and only empty cells are null. Maps
    cannot be in it.

    Raises:
        ConfigError: the file cannot be read, or has no column ``body``, or an unknown one.
    """
    try:
        for batch in _parquet(path) if form == "parquet" else _csv(path):
            _check(path, batch.schema.names)
            yield batch
    except (OSError, pa.ArrowInvalid) as error:
        raise ConfigError(f"{path} cannot be read as {form}: {error}") from error


def holds_read_messages(path: Path) -> bool:
    """Return whether a Parquet file has messages that were read, with their offsets and store times."""
    try:
        names = pa.parquet.read_schema(path).names
    except (OSError, pa.ArrowInvalid):
        return False  # read_file names the error
    return {"body", "queueOffset", "storeTimestamp"} <= {*names}


def read_messages(path: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of a Parquet file of read messages, in lists of at most 10,000.

    Each message has the fields of a message to send: ``body`` (bytes), ``tags``, ``keys``, ``flag`` and
    ``properties`` (also those that RocketMQ sets); columns that the file lacks are missing.

    Raises:
        ConfigError: the file cannot be read, or a body could not be read when the file was written.
    """
    wanted, row = ("body", "tags", "keys", "flag", "properties"), 0
    try:
        with pa.parquet.ParquetFile(path) as file:
            columns = [name for name in wanted if name in file.schema_arrow.names]
            for batch in file.iter_batches(_ROWS, columns=columns):
                rows = batch.to_pylist()
                for message in rows:
                    row += 1
                    if message["body"] is None:
                        raise ConfigError(
                            f"{path}: row {row} has no body: it could not be read: remove the row"
                        )
                    message["properties"] = dict(message.get("properties") or ())
                yield rows
    except (OSError, pa.ArrowInvalid) as error:
        raise ConfigError(f"{path} cannot be read as parquet: {error}") from error


def _parquet(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.parquet.ParquetFile(path) as file:
        yield from file.iter_batches(_ROWS)


def _csv(path: Path) -> Iterator[pa.RecordBatch]:
    types = {name: kinds[-1] for name, kinds in WRITE_COLUMNS.items() if not pa.types.is_map(kinds[-1])}
    options = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=[""])
    parse = pa.csv.ParseOptions(newlines_in_values=True)  # else a block may end inside a cell
    read = pa.csv.ReadOptions(block_size=_BLOCK_BYTES)
    with pa.csv.open_csv(path, read, parse, options) as reader:
        yield from reader


def _check(path: Path, names: list[str]) -> None:
    for name in names:
        if name not in WRITE_COLUMNS:
            raise ConfigError(f"{path}: {unknown_name('column', name, list(WRITE_COLUMNS))}")
    if "body" not in names:
        raise ConfigError(f"{path}: no column 'body': the file has {', '.join(names)}")


class ParquetFile:
    """A Parquet file with the columns of ``MESSAGE_SCHEMA``. It can be read only after :meth:`close`.

    Args:
        target: a path, whose file is replaced, or an open binary file.

    Raises:
        ConfigError: the file cannot be written.
    """

    def __init__(self, target: Path | BinaryIO) -> None:
        self._waiting: list[MessageExt] = []
        self._bytes = 0  # of their bodies
        try:
            self._writer = pa.parquet.ParquetWriter(target, MESSAGE_SCHEMA)
        except OSError as error:
            raise ConfigError(f"{target} cannot be written: {error}") from error

    def write(self, messages: Sequence[MessageExt]) -> None:
        """Add messages; they are kept in memory until a row group is full."""
        for message in messages:
            self._waiting.append(message)
            self._bytes += len(body_or_none(message) or b"")
            if len(self._waiting) >= _ROWS or self._bytes >= _GROUP_BYTES:
                self._write_group()

    def close(self) -> None:
        """Write the remaining messages and the end of the file."""
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
        messages, self._waiting, self._bytes = self._waiting, [], 0
        by_queue = groupby(messages, lambda m: MessageQueue(m.topic, m.broker_name, m.queue_id))
        batches = [rows_to_batch(list(part), queue) for queue, part in by_queue]
        self._writer.write_table(pa.Table.from_batches(batches, MESSAGE_SCHEMA))
