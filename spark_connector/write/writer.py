"""A batch write: each task sends its rows through one producer until all are acknowledged."""

import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter

from rmqtools import Admin
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from spark_connector.options.write_settings import WriteOptions
from spark_connector.worker.clients import borrowed_client
from spark_connector.worker.user_errors import text_first
from spark_connector.write.exactly_once import commit_staged
from spark_connector.write.write_task import TaskReport, place_of_task, total_of, write_rows

if TYPE_CHECKING:
    import pyarrow as pa

log = get_logger(__name__)

_READABLE_TIMEOUT: Final = 30.0  # seconds


class RocketMQBatchWriter(DataSourceArrowWriter):  # type: ignore[misc]  # pyspark's types are not followed
    """Appends rows to topics, at least or exactly once, as option ``delivery`` says.

    A task that cannot store a row after its retries fails. Spark then runs it again from its first row, so
    it may send rows twice, and none is lost.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._query = uuid.uuid4().hex  # created on the driver, so equal in all attempts

    @text_first()
    def write(self, iterator: Iterator["pa.RecordBatch"]) -> TaskReport:
        """Send the rows of one task; return when brokers have acknowledged all of them."""
        return write_rows(self._options, iterator, place_of_task(TaskContext.get(), self._query))

    @text_first()
    def commit(self, messages: Sequence[TaskReport | None]) -> None:
        """Wait until the written messages can be read, and log the sum of all tasks; staged rows are copied.

        A broker acknowledges a message before its queue shows it. Without the wait, a read right after
        ``save()`` would miss the last rows. Rows with a delay are not waited for.
        """
        total = total_of(messages)
        if self._options.staging is not None:
            commit_staged(self._options, messages)
        else:
            self._await_readable(total)
        log.info("write_committed", tasks=len(messages), **total.counts())

    def _await_readable(self, total: TaskReport) -> None:
        try:
            with borrowed_client(self._options.producer) as client:
                Admin(client).await_readable(total.rows.end_offsets, timeout=_READABLE_TIMEOUT)
        except RocketMQError as error:  # the messages are stored
            log.warning("write_not_yet_readable", reason=str(error))

    def abort(self, messages: Sequence[TaskReport | None]) -> None:
        """Log the messages that stay in the topics after a failed write: RocketMQ cannot remove them."""
        log.warning("write_aborted", tasks=len(messages), **total_of(messages).counts())
