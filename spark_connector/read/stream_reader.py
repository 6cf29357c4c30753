"""A streaming read, driven by Spark: plans offsets on the driver, reads ranges in the tasks.

One object lives in its own process on the driver while the query runs. Tasks have other copies, of which
Spark calls only :meth:`RocketMQStreamReader.read`. So the constructor keeps only the options.

- ``latestOffset``: ``stream_planner`` asks ``stream_lookup`` for the brokers' offsets; ``stream_losses``
  compares them with the expected ones, ``rate_limit`` divides the limits among the queues. The end offsets go
  into the checkpoint in the format of ``stream_offsets``.
- ``partitions``: ``tasks.plan_tasks`` makes tasks as in a batch read, but small ranges share a task.
- ``commit``: ``group_progress`` commits offsets to a group. ``progress.metrics`` computes the lag from
  Spark's own reports.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from rmqtools import Admin
from spark_connector.options.stream_settings import StreamOptions
from spark_connector.read.group_progress import GroupProgress
from spark_connector.read.stream_lookup import StreamLookup
from spark_connector.read.stream_offsets import StreamOffsets
from spark_connector.read.stream_planner import StreamPlanner
from spark_connector.read.tasks import ROWS_PER_STREAM_TASK, plan_tasks, read_task
from spark_connector.worker.clients import client_of
from spark_connector.worker.user_errors import text_first

if TYPE_CHECKING:
    import pyarrow as pa


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads topics micro-batch by micro-batch. Each batch has fixed ranges, so every run reads the same.

    Every method may raise ``DataLossError`` (messages to read are lost), ``ConfigError`` (unusable options or
    checkpoint) and ``RemotingError`` (no answer). The query then ends, and can be restarted from its
    checkpoint.
    """

    def __init__(self, options: StreamOptions) -> None:
        self._options = options

    @text_first()
    def initialOffset(self) -> dict[str, Any]:
        """Return the start of a new query. Spark asks twice, and again after a crash in the first batch."""
        return self._planner.initial_offset().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Tell Spark that there are limits. Spark carries one of them; the planner applies all."""
        limits = self._options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        if limits.min_offsets is not None:
            return ReadMinRows(limits.min_offsets)
        return ReadAllAvailable() if limits.max_bytes is None else ReadMaxBytes(limits.max_bytes)

    @text_first()
    def prepareForTriggerAvailableNow(self) -> None:
        """Limit this run of the query to the messages stored now."""
        self._planner.freeze()

    @text_first()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next micro-batch; ``start`` itself if none is to run.

        Spark has finished the batch that ends at ``start``, so its offsets may be committed to the group.
        """
        planner = self._planner
        self._commit_to_group(start)
        end = planner.plan(start, limited=not isinstance(limit, ReadAllAvailable))
        return start if end is None else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the stored offsets when brokers were last asked; sends no request."""
        return self._planner.reported_latest()

    @text_first()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the tasks of a micro-batch, the same for every run of the batch."""
        begin, ends = self._planner.ranges(StreamOffsets.from_json(start), StreamOffsets.from_json(end))
        tasks = plan_tasks(self._options.read, begin, ends, rows_per_task=ROWS_PER_STREAM_TASK)
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Yield the messages of one partition. Runs in the executor."""
        with text_first():
            yield from read_task(self._options.read, partition.value)

    @text_first()
    def commit(self, end: dict[str, Any]) -> None:
        """Commit the offsets to the group, unless :meth:`latestOffset` has done so.

        Spark calls this when it has planned the next batch, even if another source has all of its data.
        """
        self._planner.note_batch()
        self._commit_to_group(end)

    @cached_property
    def _planner(self) -> StreamPlanner:
        if self._progress is not None:
            self._progress.check_unused()
        return StreamPlanner(
            brokers=StreamLookup(self._options),
            limits=self._options.limits,
            poll_interval=self._options.poll_interval,
            fail_on_data_loss=self._options.read.fail_on_data_loss,
            patience=self._options.read.planning_timeout,
        )

    @cached_property
    def _progress(self) -> GroupProgress | None:
        if self._options.commit_to is None:
            return None
        return GroupProgress(Admin(client_of(self._options.read.client)), self._options.commit_to)

    def _commit_to_group(self, given: dict[str, Any]) -> None:
        """Commit the offsets of a finished batch, once. The start of a query is not committed."""
        if self._progress is not None and self._progress.is_due(given):
            offsets = StreamOffsets.from_json(given)
            self._progress.commit({} if offsets.next == offsets.begin else offsets.next, given)
