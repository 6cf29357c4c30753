"""One write task: sends its rows and reports their outcomes.

Rows that cannot be sent (option ``onBadRow``) are skipped, or sent to another topic:

part of a diverted message    content
body                          that of the row; ``-`` if it has none; only its first MiB if it is too large
property SPARK_BAD_ROW        the reason
property SPARK_BAD_ROW_TOPIC  the topic that the row names, if the topic can be a property
tags, keys, properties        those of the row, if all of them can be sent; else left out
stamps                        those of the row, if the write has stamps
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import WriterCommitMessage

from rmqtools import Message, Producer
from rmqtools.arrow import BadRow, SendReport, canonical_batches, send_batches
from rmqtools.errors import ConfigError
from rmqtools.log import get_logger
from spark_connector.options.bad_row_policy import BadRowPolicy
from spark_connector.options.write_settings import WriteOptions
from spark_connector.worker.clients import borrowed_producer
from spark_connector.worker.gc_freeze import freeze_once
from spark_connector.write.copied_rows import check_queues, copied_rows
from spark_connector.write.stamps import Stamper
from spark_connector.write.topics import check_topics

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import TaskContext

log = get_logger(__name__)

# local properties of Spark's jobs
_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
_JOB_TAGS: Final = "spark.job.tags"
# settings that Spark makes in the session of each stream: the first two up to 4.0, then one and three
_NO_OPTIMIZER: Final = "spark.sql.cbo.enabled"
_NOT_ADAPTIVE: Final = "spark.sql.adaptive.enabled"
_STATE: Final = "spark.sql.streaming.internal.stateStore.partitions"
_CONNECT_TAG: Final = "SparkConnect_"


BAD_ROW_REASON: Final = "SPARK_BAD_ROW"
BAD_ROW_TOPIC: Final = "SPARK_BAD_ROW_TOPIC"
_LOGGED: Final = 10  # of a task
_DIVERTED_BYTES: Final = 1024 * 1024
_REASON_CHARACTERS: Final = 1000


class BadRows:
    """The bad rows of one task; calls take them from ``send_batches``.

    Attributes:
        count: how many there were.
    """

    def __init__(self, policy: BadRowPolicy, producer: Producer, partition: int) -> None:
        self._topic = policy.topic
        self._producer = producer
        self._partition = partition
        self.count = 0

    def __call__(self, rows: Sequence[BadRow]) -> None:
        """Count rows, log the first ten of the task, and send them to the topic if there is one.

        Raises:
            SendError: a row could not be stored in the topic.
        """
        for bad in rows[: max(_LOGGED - self.count, 0)]:
            log.warning("bad_row", partition=self._partition, reason=bad.reason, diverted_to=self._topic)
        self.count += len(rows)
        if self._topic is not None:
            self._producer.send_many([self._diverted(bad, self._topic) for bad in rows])

    def _diverted(self, bad: BadRow, topic: str) -> Message:
        reason = "".join(letter if letter.isprintable() else "?" for letter in bad.reason)
        most = min(_DIVERTED_BYTES, self._producer.config.max_message_bytes)
        given = {BAD_ROW_REASON: reason[:_REASON_CHARACTERS]}
        return bad.as_message(topic, given, topic_property=BAD_ROW_TOPIC, max_body_bytes=most)


@dataclass
class TaskReport(WriterCommitMessage):  # type: ignore[misc]  # pyspark's types are not followed
    """Outcomes of one task's rows, sent from the task to the driver.

    Attributes:
        rows: the outcomes.
        bad_rows: how many rows were bad.
        query: id of the streaming query; None: a batch write.
        batch: its micro-batch.
    """

    rows: SendReport = field(default_factory=SendReport)
    bad_rows: int = 0
    query: str | None = None
    batch: int = 0

    def counts(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return {**self.rows.counts(), "bad_rows": self.bad_rows}


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """The place of a task in a write.

    Attributes:
        query: id of the write: the streaming query's, else one generated for the write.
        batch: the query's micro-batch; 0 for a write outside queries.
        partition: the task's partition.
        attempt: counts from 0.
        is_made: whether the id was generated for this write.
        is_remote: whether Spark Connect sent the job.
        is_detached: whether the job belongs to a stream, and Spark does not say to which: a thread of
            ``foreachBatch`` has started it, or any ``foreachBatch`` on Spark Connect.
    """

    query: str
    batch: int
    partition: int
    attempt: int
    is_made: bool = False
    is_remote: bool = False
    is_detached: bool = False

    def check(self, options: WriteOptions) -> None:
        """Refuse a write that must know its micro-batch, and does not.

        Raises:
            ConfigError: names the way out.
        """
        if not self.is_detached or not (options.stamp or options.staging is not None):
            return
        if self.is_remote and (options.stamp_id or "")[-1:].isdecimal():
            return
        what = "stamp" if options.staging is None else "delivery"
        way_out = (
            "writes of foreachBatch do not have on Spark Connect: put it at the end of option 'stampId' "
            "(f'orders-{batch_id}'), or write the stream itself with writeStream.format('rocketmq')"
            if self.is_remote
            else "threads of foreachBatch do not inherit: start them with "
            "pyspark.inheritable_thread_target(frame.sparkSession), or write in the thread that calls the "
            "function"
        )
        raise ConfigError(
            f"option {what!r} needs the number of the micro-batch, which {way_out}. If this is no stream, "
            f"remove the setting {_NO_OPTIMIZER}=false, which is Spark's default"
        )

    def stamper(self, options: WriteOptions) -> Stamper | None:
        """Make the task's stamper; None: the options request no stamps.

        Raises:
            ConfigError: the job may be a ``foreachBatch`` on Spark Connect, where the query is unknown.
        """
        if not options.stamp:
            return None
        if self.is_remote and self.is_made and options.stamp_id is None:
            raise ConfigError(
                "option 'stamp' needs option 'stampId' on Spark Connect, where a write inside foreachBatch "
                "does not know its query: give an id that is equal when the write is run again, e.g. made of "
                "the batch's number"
            )
        query = None if self.is_made and options.stamp_id is not None else self.query
        return Stamper(query, self.batch, self.partition, options.id_column, options.stamp_id)


def place_of_task(context: "TaskContext | None", made_id: str) -> TaskPlace:
    """Return the place of the running task; ``made_id`` is the write's id outside streaming queries.

    Spark passes a stream's query and micro-batch to all its jobs as local properties, also to jobs that
    ``foreachBatch`` starts.
    """
    if context is None:
        return TaskPlace(made_id, 0, 0, 0, is_made=True)
    query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
    tags = context.getLocalProperty(_JOB_TAGS) or ""
    return TaskPlace(
        query or made_id,
        int(batch) if query else 0,
        context.partitionId(),
        context.attemptNumber(),
        is_made=not query,
        is_remote=_CONNECT_TAG in tags,
        is_detached=not query and _is_of_a_stream(context),
    )


def _is_of_a_stream(context: "TaskContext") -> bool:
    """Return whether the job runs in the session of a stream, by its settings."""
    return context.getLocalProperty(_NO_OPTIMIZER) == "false" and (
        context.getLocalProperty(_NOT_ADAPTIVE) == "false" or context.getLocalProperty(_STATE) is not None
    )


def write_rows(options: WriteOptions, batches: Iterable["pa.RecordBatch"], place: TaskPlace) -> TaskReport:
    """Send the rows of one task; return when brokers have acknowledged all of them.

    Raises:
        ConfigError: stamps need an id, or the write needs its micro-batch.
        MessageRejectedError: names a row that cannot be sent.
        SendError: a row could not be stored.
    """
    report, bad_rows = SendReport(ranges=None if options.staging is None else {}), None
    place.check(options)
    stamper = place.stamper(options)
    try:
        with borrowed_producer(options.producer) as producer:
            if options.staging is not None:
                producer.fetch_publish_queues(options.staging.topic)  # its queues change with the target's
            if not options.on_bad_row.is_fail:
                bad_rows = BadRows(options.on_bad_row, producer, place.partition)
            send_batches(
                producer,
                _prepared(options, batches, producer),
                topic=options.sent_topic,
                selector=options.make_selector() if options.make_selector else None,
                extra_properties=stamper,
                unsent=options.unsent,
                on_bad_rows=bad_rows,
                report=report,
            )
    except Exception:
        log.warning("write_task_failed", partition=place.partition, attempt=place.attempt, **report.counts())
        raise
    if report.retried or report.unknown:
        log.warning("rows_retried", partition=place.partition, attempt=place.attempt, **report.counts())
    freeze_once()
    query = None if place.is_made else place.query
    return TaskReport(report, 0 if bad_rows is None else bad_rows.count, query, place.batch)


def _prepared(
    options: WriteOptions, batches: Iterable["pa.RecordBatch"], producer: Producer
) -> Iterable["pa.RecordBatch"]:
    """Return the rows to send; of rows that were read, without the parts that brokers and clients set."""
    batches = canonical_batches(batches)
    if not options.create_topic:
        batches = check_topics(options, batches)
    if not options.is_copy:
        return batches
    copied = (copied_rows(batch, new_stamps=options.stamp) for batch in batches)
    return check_queues(copied, producer, options.topic) if options.keep_queue else copied


def total_of(reports: Sequence[TaskReport | None]) -> TaskReport:
    """Return the sum of all tasks' reports; None stands for a failed task."""
    total = TaskReport()
    for report in reports:
        if report is not None:
            total.rows.add(report.rows)
            total.bad_rows += report.bad_rows
    return total


def refuse_overwrite(overwrite: bool) -> None:
    """Refuse the save mode overwrite: a topic can only be appended to.

    Raises:
        ConfigError: the save mode is overwrite.
    """
    if overwrite:
        raise ConfigError("mode 'overwrite' is impossible: a topic can only be added to; use .mode('append')")
