"""What one write task does with its rows, and what it reports."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from rmqtools.arrow import SendReport, send_batches
from rmqtools.errors import ConfigError
from rmqtools.log import get_logger
from spark_connector.clients import lent_producer
from spark_connector.collector import settle
from spark_connector.stamps import Stamper
from spark_connector.write_role import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

log = get_logger(__name__)


@dataclass
class TaskReport(WriterCommitMessage):  # type: ignore[misc]  # pyspark's types are not followed
    """What became of one task's rows; travels from the task to the driver."""

    rows: SendReport = field(default_factory=SendReport)


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """Where a task stands: ``query`` is the write, ``batch`` its micro-batch, ``attempt`` counts from 0."""

    query: str
    batch: int
    partition: int
    attempt: int


def write_rows(options: WriteOptions, batches: Iterable["pa.RecordBatch"], place: TaskPlace) -> TaskReport:
    """Send the rows of one task; return when brokers have acknowledged every one.

    Raises:
        MessageRejectedError: names a row that cannot be sent.
        SendError: a row could not be placed.
    """
    report = SendReport()
    stamper = Stamper(place.query, place.batch, place.partition, options.id_column)
    try:
        with lent_producer(options.producer) as producer:
            send_batches(
                producer,
                batches,
                topic=options.topic,
                selector=options.make_selector() if options.make_selector else None,
                extra_properties=stamper if options.stamp else None,
                unsent=options.unsent,
                report=report,
            )
    except Exception:
        log.warning("write_task_failed", partition=place.partition, attempt=place.attempt, **report.counts())
        raise
    settle()
    return TaskReport(report)


def total_of(reports: Sequence[TaskReport | None]) -> SendReport:
    """What all tasks did; None is a task that failed."""
    total = SendReport()
    for report in reports:
        if report is not None:
            total.add(report.rows)
    return total


def refuse_overwrite(overwrite: bool) -> None:
    """Refuse what a topic cannot do.

    Raises:
        ConfigError: the save mode is overwrite.
    """
    if overwrite:
        raise ConfigError("mode 'overwrite' is impossible: a topic can only be added to; use .mode('append')")
