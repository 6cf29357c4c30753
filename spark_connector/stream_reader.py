"""A streaming read as Spark drives it: offsets planned on the driver, ranges read in the tasks.

One object lives in a process of its own on the driver for as long as the query runs; the tasks have others,
which only :meth:`RocketMQStreamReader.read` is called on. So the options are all that the constructor keeps.
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
from spark_connector.clients import client_of
from spark_connector.group_progress import GroupProgress
from spark_connector.stream_lookup import StreamLookup
from spark_connector.stream_offsets import StreamOffsets, batch_begin
from spark_connector.stream_planner import StreamPlanner
from spark_connector.stream_role import StreamOptions
from spark_connector.tasks import plan_tasks, read_task

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_PER_TASK = 1000  # to hand a task to a Python worker takes as long as 5,000 messages and more


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads topics micro-batch by micro-batch; each has fixed ranges, so running it again reads the same.

    Every method may raise ``DataLossError`` (messages to be read are gone), ``ConfigError`` (options or
    checkpoint cannot be used) and ``RemotingError`` (nobody answered): the query then ends, and can be
    started again from its checkpoint.
    """

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._told: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query starts. Spark asks twice, and again after a crash in the first batch."""
        return self._planner.initial_offset().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """A sign that there are limits: Spark carries one, the options may have several."""
        limits = self._options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        if limits.min_offsets is not None:
            return ReadMinRows(limits.min_offsets)
        return ReadAllAvailable() if limits.max_bytes is None else ReadMaxBytes(limits.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        """Take what is stored now for all that this run of the query reads."""
        self._planner.freeze()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Where the next micro-batch ends; ``start`` itself if there is none to be run.

        Spark has finished what ends at ``start``, so the group may be told.
        """
        planner = self._planner
        self._tell_group(start)
        end = planner.plan(start, limited=not isinstance(limit, ReadAllAvailable))
        return start if end is None else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """What was stored when brokers were last asked; they are not asked for this."""
        return self._planner.reported_latest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a micro-batch: the same ones whenever it is run again."""
        ends = StreamOffsets.from_json(end)
        begin = batch_begin(StreamOffsets.from_json(start), ends)
        tasks = plan_tasks(self._options.read, begin, ends.next, rows_per_task=_ROWS_PER_TASK)
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Yield the messages of one partition. Runs in the executor."""
        yield from read_task(self._options.read, partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        """Tell the group, if it was not told by :meth:`latestOffset` already."""
        self._tell_group(end)

    @cached_property
    def _planner(self) -> StreamPlanner:
        if self._progress is not None:
            self._progress.check_unused()
        return StreamPlanner(
            brokers=StreamLookup(self._options),
            limits=self._options.limits,
            poll_interval=self._options.poll_interval,
            fail_on_data_loss=self._options.read.fail_on_data_loss,
        )

    @cached_property
    def _progress(self) -> GroupProgress | None:
        if self._options.commit_to is None:
            return None
        return GroupProgress(Admin(client_of(self._options.read.client)), self._options.commit_to)

    def _tell_group(self, given: dict[str, Any]) -> None:
        """Commit the offsets of a finished batch, once; where a query starts is no progress."""
        if self._progress is None or given == self._told:
            return
        self._told = given
        offsets = StreamOffsets.from_json(given)
        if offsets.next != offsets.begin:
            self._progress.commit(offsets.next)
