"""A streaming write: writes every micro-batch like a batch."""

import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql import datasource

from rmqtools.log import get_logger
from spark_connector.options.write_settings import WriteOptions
from spark_connector.worker.user_errors import text_first
from spark_connector.write.exactly_once import commit_staged
from spark_connector.write.row_batches import batches_of
from spark_connector.write.write_task import TaskReport, place_of_task, total_of, write_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

log = get_logger(__name__)


_HAS_ARROW: Final = hasattr(datasource, "DataSourceStreamArrowWriter")  # not in PySpark 4.0
_BASE: Final[Any] = (
    datasource.DataSourceStreamArrowWriter if _HAS_ARROW else datasource.DataSourceStreamWriter
)


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
