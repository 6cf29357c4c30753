"""Writes with ``delivery=exactlyOnce``: tasks stage rows, and the driver's commit copies those that count.

    task     rows -> staging topic, reports the ranges that were acknowledged
    commit   decides by the first record of the micro-batch, or of the job's stampId, and copies its ranges

The rules are those of :class:`rmqtools.StagedWrites`. Rows of failed attempts stay in the
staging topic and are not copied.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Final

from rmqtools import QueueRange, StagedCommit, StagedStatus, StagedWrites
from rmqtools.errors import ConfigError
from rmqtools.log import get_logger
from spark_connector.options.option_table import parse_options
from spark_connector.options.write_settings import WriteOptions, write_options
from spark_connector.worker.clients import borrowed_producer
from spark_connector.write.write_task import TaskReport, total_of

log = get_logger(__name__)

_JOB: Final = 0  # the commit of a batch write, which has one


def exactly_once_status(options: Mapping[str, str], *, query: str | None = None) -> StagedStatus:
    """Return the progress of the last commit of an exactly-once write. New in 0.3.0.

    Args:
        options: those of the write.
        query: the id of the streaming query (``query.id``); None: the batch write with option ``stampId``.

    Raises:
        ConfigError: options without ``delivery=exactlyOnce``, or neither query nor ``stampId``.
        TopicNotFoundError: nothing was written with these options yet, or all brokers of its rows are down.
    """
    with _opened(_exact_options(options), query) as writes:
        return writes.status()


def give_up_batch(options: Mapping[str, str], *, query: str | None = None, batch: int | None = None) -> None:
    """End a decided batch whose staged rows are gone, so that its query can continue.

    Rows that were copied stay. Stop the query, or the job, before this call. New in 0.3.0.

    Args:
        options: those of the write.
        query: as of :func:`exactly_once_status`.
        batch: number of the micro-batch, the ``batch`` of :func:`exactly_once_status`; None: the batch write.

    Raises:
        ConfigError: this is not the last batch that was decided.
    """
    with _opened(_exact_options(options), query) as writes:
        writes.give_up(_JOB if batch is None else batch)


def prepare(options: WriteOptions) -> None:
    """Make missing topics, and refuse unsuitable targets and brokers; do nothing for other writes.

    Raises:
        ConfigError: a target, or a setting of a broker, with which rows might be stored twice.
        TopicNotFoundError: the target does not exist.
    """
    if options.staging is not None:
        with _opened(options, "prepared") as writes:
            writes.prepare(longest_outage=options.staging.longest_outage)


def check_batch_write(options: WriteOptions) -> None:
    """Refuse an exactly-once batch write without an id of its own.

    Raises:
        ConfigError: names the option.
    """
    if options.staging is not None and options.stamp_id is None:
        raise ConfigError(
            "option 'delivery' = 'exactlyOnce' needs option 'stampId' for a batch write: a job that is run "
            "again is only known by an id that is equal each time"
        )


def commit_staged(options: WriteOptions, reports: Sequence[TaskReport | None]) -> StagedCommit | None:
    """Copy the rows that count; None: there was no task, so there are no rows.

    Raises:
        RocketMQError: as of :meth:`rmqtools.StagedWrites.commit`.
    """
    assert options.staging is not None
    written = [report for report in reports if report is not None]
    if not written:
        return None
    query, batch = written[0].query, written[0].batch
    with _opened(options, query) as writes:
        done = writes.commit(
            _JOB if query is None else batch,
            _ranges(written),
            digest=total_of(written).rows.digest,
            keep_first=options.staging.keep_first,
        )
    if done.is_given_up:
        log.warning("exactly_once_batch_given_up", query=query, batch=batch)
    if query is None and not done.is_first:  # the rows of the first run count
        log.warning("stamp_id_used_before", stamp_id=options.stamp_id, rows=done.rows)
    log.info(
        "exactly_once_committed",
        query=query,
        batch=batch,
        rows=done.rows,
        copied=done.copied,
        is_first=done.is_first,
    )
    return done


def _ranges(reports: Sequence[TaskReport]) -> list[QueueRange]:
    return [
        QueueRange(queue, begin, end)
        for report in reports
        for queue, found in (report.rows.ranges or {}).items()
        for begin, end in found
    ]


@contextmanager
def _opened(options: WriteOptions, query: str | None) -> Iterator[StagedWrites]:
    staging = options.staging
    assert staging is not None
    assert options.topic is not None
    with (
        borrowed_producer(options.producer) as producer,
        StagedWrites(
            producer,
            topic=options.topic,
            staging_topic=staging.topic,
            writer=_writer_name(query, options.stamp_id),
            is_recurring=query is not None,
        ) as writes,
    ):
        yield writes


def _writer_name(query: str | None, stamp_id: str | None) -> str:
    """Return a name of letters and digits, equal for each run of a query or a job."""
    if query is None and stamp_id is None:
        raise ConfigError("neither a query nor option 'stampId' is given: one of them names the write")
    text = "\n".join(part for part in (query, stamp_id) if part is not None)
    return f"spark-{blake2b(text.encode(), digest_size=16).hexdigest()}"


def _exact_options(options: Mapping[str, str]) -> WriteOptions:
    found = write_options(parse_options(dict(options)))
    if found.staging is None:
        raise ConfigError("option 'delivery' is not 'exactlyOnce': give the options of the write")
    return found
