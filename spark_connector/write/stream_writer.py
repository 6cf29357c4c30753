"""A streaming write: writes every micro-batch like a batch."""

import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter

from rmqtools.log import get_logger
from spark_connector.options.write_settings import WriteOptions
from spark_connector.worker.user_errors import text_first
from spark_connector.write.write_task import TaskReport, place_of_task, total_of, write_rows

if TYPE_CHECKING:
    import pyarrow as pa

log = get_logger(__name__)


class RocketMQStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]  # pyspark's types are not followed
    """Appends the rows of each micro-batch to topics, at least once.

    Output mode ``complete`` appends the whole result at every trigger. A batch that failed is written
    again with the same number; with ``stamp`` readers can drop the duplicates.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._query = uuid.uuid4().hex  # Spark gives the query's own id in every task of a stream

    @text_first()
    def write(self, iterator: Iterator["pa.RecordBatch"]) -> TaskReport:
        """Send the rows of one task; return when brokers have acknowledged all of them."""
        return write_rows(self._options, iterator, place_of_task(TaskContext.get(), self._query))

    def commit(self, messages: Sequence[TaskReport | None], batchId: int) -> None:
        """Log the sum of a micro-batch's tasks."""
        log.info("write_committed", batch=batchId, tasks=len(messages), **total_of(messages).counts())

    def abort(self, messages: Sequence[TaskReport | None], batchId: int) -> None:
        """Log the messages that stay in the topics after a failed batch: RocketMQ cannot remove them."""
        log.warning("write_aborted", batch=batchId, tasks=len(messages), **total_of(messages).counts())
