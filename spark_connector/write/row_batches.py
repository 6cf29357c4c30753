"""Record batches of rows: PySpark 4.0 gives a streaming write rows instead of batches."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rmqtools.arrow import WRITE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_ROWS: Final = 4096
_TEXTS: Final = "string"


def batches_of(rows: Iterable[Any], schema: "StructType") -> Iterator[pa.RecordBatch]:
    """Yield the rows as batches.

    Args:
        rows: tuples of the schema's columns; times without a zone are local.
        schema: the columns; those that are not sent have the types that their values show.
    """
    kinds = [_kind(field.name, field.dataType.typeName()) for field in schema]
    waiting = iter(rows)
    while portion := list(islice(waiting, _ROWS)):
        arrays = [
            pa.array([_plain(value) for value in values], kind)
            for values, kind in zip(zip(*portion, strict=True), kinds, strict=True)
        ]
        yield pa.record_batch(arrays, names=schema.names)


def _kind(name: str, type_name: str) -> pa.DataType | None:
    if name not in WRITE_COLUMNS:
        return None
    first, *others = WRITE_COLUMNS[name]
    return others[0] if others and type_name == _TEXTS else first


def _plain(value: Any) -> Any:
    """Return a value as Arrow takes it."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return bytes(value) if isinstance(value, bytearray) else value
