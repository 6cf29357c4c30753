"""A batch write: each task sends its rows through one producer, and ends when all are acknowledged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from rmqtools import Admin, Producer
from rmqtools.arrow import SendReport, send_batches
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.log import get_logger
from spark_connector.clients import client_of
from spark_connector.roles import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

log = get_logger(__name__)

_READABLE_TIMEOUT: Final = 30.0  # seconds; a broker further behind has troubles of its own


@dataclass
class TaskReport(WriterCommitMessage):  # type: ignore[misc]  # pyspark's types are not followed
    """What became of one task's rows; travels from the task to the driver."""

    rows: SendReport = field(default_factory=SendReport)


class RocketMQBatchWriter(DataSourceArrowWriter):  # type: ignore[misc]  # pyspark's types are not followed
    """Appends rows to topics, at least once.

    A task that cannot place a row after its retries fails; Spark then runs the task again from its first
    row, so rows may be stored twice and none is dropped.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> TaskReport:
        """Send the rows of one task; return when brokers have acknowledged every one."""
        report = SendReport()
        try:
            with Producer(self._options.producer) as producer:
                send_batches(producer, iterator, topic=self._options.topic, report=report)
        except Exception:
            log.warning("write_task_failed", **report.counts())
            raise
        return TaskReport(report)

    def commit(self, messages: Sequence[TaskReport | None]) -> None:
        """Wait until what was written can be read, and log what all tasks did.

        A broker acknowledges a message a moment before its queue shows it, so without the wait a read that
        starts after ``save()`` would end before the last rows.
        """
        total = _total(messages)
        try:
            Admin(client_of(self._options.producer)).await_readable(
                total.end_offsets, timeout=_READABLE_TIMEOUT
            )
        except RocketMQError as error:  # stored all the same
            log.warning("write_not_yet_readable", reason=str(error))
        log.info("write_committed", tasks=len(messages), **total.counts())

    def abort(self, messages: Sequence[TaskReport | None]) -> None:
        """Log what stays in the topics although the write failed: RocketMQ cannot take it back."""
        log.warning("write_aborted", tasks=len(messages), **_total(messages).counts())


def refuse_overwrite(overwrite: bool) -> None:
    """Refuse what a topic cannot do.

    Raises:
        ConfigError: the save mode is overwrite.
    """
    if overwrite:
        raise ConfigError("mode 'overwrite' is impossible: a topic can only be added to; use .mode('append')")


def _total(reports: Sequence[TaskReport | None]) -> SendReport:
    total = SendReport()
    for report in reports:
        if report is not None:
            total.add(report.rows)
    return total
