"""A streaming read on PySpark 4.0 and 4.1: no limits of a micro-batch, Trigger.AvailableNow is one batch."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from rmqtools import Admin
from spark_connector.options.stream_settings import StreamOptions
from spark_connector.read.early_planner import EarlyPlanner
from spark_connector.read.group_progress import GroupProgress
from spark_connector.read.stream_lookup import StreamLookup
from spark_connector.read.stream_offsets import StreamOffsets
from spark_connector.read.tasks import ROWS_PER_STREAM_TASK, plan_tasks, read_task
from spark_connector.worker.clients import client_of
from spark_connector.worker.user_errors import text_first

if TYPE_CHECKING:
    import pyarrow as pa


class RocketMQEarlyStreamReader(DataSourceStreamReader):  # type: ignore[misc]  # pyspark's types are not followed
    """Reads topics micro-batch by micro-batch; errors as those of ``RocketMQStreamReader``."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options

    @text_first()
    def initialOffset(self) -> dict[str, Any]:
        """Return the start of a new query."""
        return self._planner.initial_offset().to_json()

    @text_first()
    def latestOffset(self) -> dict[str, Any]:
        """Return the end of the next micro-batch."""
        return self._planner.latest_offset().to_json()

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
        """Commit the offsets of a finished micro-batch to the group of option ``commitOffsetsToGroup``."""
        if self._progress is not None and self._progress.is_due(end):
            self._progress.commit(StreamOffsets.from_json(end).next, end)

    @cached_property
    def _planner(self) -> EarlyPlanner:
        if self._progress is not None:
            self._progress.check_unused()
        return EarlyPlanner(
            brokers=StreamLookup(self._options),
            poll_interval=self._options.poll_interval,
            fail_on_data_loss=self._options.read.fail_on_data_loss,
            patience=self._options.read.planning_timeout,
        )

    @cached_property
    def _progress(self) -> GroupProgress | None:
        if self._options.commit_to is None:
            return None
        return GroupProgress(Admin(client_of(self._options.read.client)), self._options.commit_to)
