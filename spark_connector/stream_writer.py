"""A streaming write: as a batch write, for every micro-batch."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter

from rmqtools.log import get_logger
from spark_connector.write_role import WriteOptions
from spark_connector.write_task import TaskPlace, TaskReport, total_of, write_rows

if TYPE_CHECKING:
    import pyarrow as pa

log = get_logger(__name__)

# Spark's names of what a task of a stream belongs to
_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"


class RocketMQStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]  # pyspark's types are not followed
    """Appends the rows of each micro-batch to topics, at least once.

    Output mode ``complete`` appends the whole result at every trigger. A batch that did not get through is
    written again with the same number: with ``stamp`` readers can tell.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> TaskReport:
        """Send the rows of one task; return when brokers have acknowledged every one."""
        return write_rows(self._options, iterator, _place(TaskContext.get()))

    def commit(self, messages: Sequence[TaskReport | None], batchId: int) -> None:
        """Log what all tasks of a micro-batch did."""
        log.info("write_committed", batch=batchId, tasks=len(messages), **total_of(messages).counts())

    def abort(self, messages: Sequence[TaskReport | None], batchId: int) -> None:
        """Log what stays in the topics although the batch failed: RocketMQ cannot take it back."""
        log.warning("write_aborted", batch=batchId, tasks=len(messages), **total_of(messages).counts())


def _place(context: TaskContext) -> TaskPlace:
    query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
    return TaskPlace(query, int(batch), context.partitionId(), context.attemptNumber())
