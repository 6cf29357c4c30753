"""A batch write: each task sends its rows through one producer, and ends when all are acknowledged."""

import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter

from rmqtools import Admin
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from spark_connector.clients import lent_client
from spark_connector.write_role import WriteOptions
from spark_connector.write_task import TaskPlace, TaskReport, total_of, write_rows

if TYPE_CHECKING:
    import pyarrow as pa

log = get_logger(__name__)

_READABLE_TIMEOUT: Final = 30.0  # seconds; a broker further behind has troubles of its own


class RocketMQBatchWriter(DataSourceArrowWriter):  # type: ignore[misc]  # pyspark's types are not followed
    """Appends rows to topics, at least once.

    A task that cannot place a row after its retries fails; Spark then runs the task again from its first
    row, so rows may be stored twice and none is dropped.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._query = uuid.uuid4().hex  # made on the driver, so the same in all attempts

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> TaskReport:
        """Send the rows of one task; return when brokers have acknowledged every one."""
        context = TaskContext.get()
        partition, attempt = (context.partitionId(), context.attemptNumber()) if context else (0, 0)
        return write_rows(self._options, iterator, TaskPlace(self._query, 0, partition, attempt))

    def commit(self, messages: Sequence[TaskReport | None]) -> None:
        """Wait until what was written can be read, and log what all tasks did.

        A broker acknowledges a message a moment before its queue shows it, so without the wait a read that
        starts after ``save()`` would end before the last rows. Rows with a delay are not waited for.
        """
        total = total_of(messages)
        try:
            with lent_client(self._options.producer) as client:
                Admin(client).await_readable(total.end_offsets, timeout=_READABLE_TIMEOUT)
        except RocketMQError as error:  # stored all the same
            log.warning("write_not_yet_readable", reason=str(error))
        log.info("write_committed", tasks=len(messages), **total.counts())

    def abort(self, messages: Sequence[TaskReport | None]) -> None:
        """Log what stays in the topics although the write failed: RocketMQ cannot take it back."""
        log.warning("write_aborted", tasks=len(messages), **total_of(messages).counts())
