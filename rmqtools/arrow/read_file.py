"""Reads the rows of a Parquet or CSV file as record batches to send."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rmqtools.arrow.schema import WRITE_COLUMNS
from rmqtools.config.text import unknown_name
from rmqtools.errors import ConfigError

_ROWS: Final = 10_000  # as send_batches takes them


def read_file(path: Path, form: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, as columns of ``WRITE_COLUMNS``; ``form``: ``parquet`` or ``csv``.

    A CSV file has a line of column names; bodies are its texts in UTF-8. Maps cannot be in it.

    Raises:
        ConfigError: the file cannot be read, or has no column ``body``, or an unknown one.
    """
    try:
        for batch in _parquet(path) if form == "parquet" else _csv(path):
            _check(path, batch.schema.names)
            yield batch
    except (OSError, pa.ArrowInvalid) as error:
        raise ConfigError(f"{path} cannot be read as {form}: {error}") from error


def _parquet(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.parquet.ParquetFile(path) as file:
        yield from file.iter_batches(_ROWS)


def _csv(path: Path) -> Iterator[pa.RecordBatch]:
    types = {name: kinds[-1] for name, kinds in WRITE_COLUMNS.items() if not pa.types.is_map(kinds[-1])}
    options = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    with pa.csv.open_csv(path, convert_options=options) as reader:
        yield from reader


def _check(path: Path, names: list[str]) -> None:
    for name in names:
        if name not in WRITE_COLUMNS:
            raise ConfigError(f"{path}: {unknown_name('column', name, list(WRITE_COLUMNS))}")
    if "body" not in names:
        raise ConfigError(f"{path}: no column 'body': the file has {', '.join(names)}")
