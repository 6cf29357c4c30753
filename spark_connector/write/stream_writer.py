"""A streaming write: writes every micro-batch like a batch.

PySpark 4.0 gives it rows instead of record batches: :func:`batches_of` makes batches of them.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource

from rmqtools.arrow import WRITE_COLUMNS
from rmqtools.log import get_logger
from spark_connector.options.write_settings import WriteOptions
from spark_connector.worker.user_errors import text_first
from spark_connector.write.exactly_once import commit_staged
from spark_connector.write.write_task import TaskReport, place_of_task, total_of, write_rows

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

log = get_logger(__name__)

_ROWS: Final = 4096  # of a batch that is made of rows
_TEXTS: Final = "string"
_HAS_ARROW: Final = hasattr(datasource, "DataSourceStreamArrowWriter")  # not in PySpark 4.0
_BASE: Final[Any] = (
    datasource.DataSourceStreamArrowWriter if _HAS_ARROW else datasource.DataSourceStreamWriter
)


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


class RocketMQStreamWriter(_BASE):  # type: ignore[misc]  # pyspark's types are not followed
    """Appends the rows of each micro-batch to topics, at least or exactly once, as option ``delivery`` says.

    Output mode ``complete`` appends the whole result at every trigger. A batch that failed is written
    again with the same number; with ``stamp`` readers can drop the duplicates.
    """

    def __init__(self, options: WriteOptions, schema: "StructType") -> None:
        self._options = options
        self._schema = schema
        self._query = uuid.uuid4().hex  # Spark gives the query's own id in every task of a stream

    @text_first()
    def write(self, iterator: Iterator[Any]) -> TaskReport:
        """Send the rows of one task; return when brokers have acknowledged all of them.

        Args:
            iterator: the rows as record batches; as ``Row`` on PySpark 4.0.
        """
        batches: Iterator[pa.RecordBatch] = iterator if _HAS_ARROW else batches_of(iterator, self._schema)
        return write_rows(self._options, batches, place_of_task(TaskContext.get(), self._query))

    @text_first()
    def commit(self, messages: Sequence[TaskReport | None], batchId: int) -> None:
        """Copy staged rows, if any, and log the sum of a micro-batch's tasks."""
        if self._options.staging is not None:
            commit_staged(self._options, messages)
        log.info("write_committed", batch=batchId, tasks=len(messages), **total_of(messages).counts())

    def abort(self, messages: Sequence[TaskReport | None], batchId: int) -> None:
        """Log the messages that stay in the topics after a failed batch: RocketMQ cannot remove them."""
        log.warning("write_aborted", batch=batchId, tasks=len(messages), **total_of(messages).counts())
