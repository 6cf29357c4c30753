"""A batch read: ranges fixed on the driver, one Spark partition each, read as Arrow batches in the tasks."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from rmqtools import Admin, MessageQueue
from rmqtools.arrow import read_range
from rmqtools.errors import ConfigError
from spark_connector.clients import client_of
from spark_connector.offsets import OffsetSpec, resolve_offsets
from spark_connector.planning import plan_ranges
from spark_connector.roles import ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa


class RocketMQBatchReader(DataSourceReader):  # type: ignore[misc]  # pyspark's types are not followed
    """Reads ``[startingOffsets, endingOffsets)`` of every queue of the topics.

    Spark plans once per ``load()``, in another process than it reads in: a partition carries its whole
    range, so a retried task reads the same messages, and so does every action on the DataFrame.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Ask the brokers for the queues' offsets and cut them into ranges.

        Raises:
            TopicNotFoundError: a topic has no route.
            PermissionDeniedError: a topic may not be read.
            ValueError: offsets that are not stored, queues that do not exist, a start after the end.
        """
        options = self._options
        admin = Admin(client_of(options.client))
        queues = [queue for topic in options.topics for queue in admin.fetch_subscribe_queues(topic)]
        earliest = {queue: admin.min_offset(queue) for queue in queues}
        latest = {queue: admin.max_offset(queue) for queue in queues}
        begin = _resolve("startingOffsets", options.starting_offsets, earliest, latest)
        end = _resolve("endingOffsets", options.ending_offsets, earliest, latest)
        ranges = plan_ranges(
            begin, end, min_partitions=options.min_partitions, max_records=options.max_records_per_partition
        )
        return [InputPartition(range_) for range_ in ranges]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Yield the messages of one range."""
        if partition.value is None:  # what Spark makes of an empty list of partitions
            return
        yield from read_range(client_of(self._options.client), partition.value)


def _resolve(
    option: str, spec: OffsetSpec, earliest: Mapping[MessageQueue, int], latest: Mapping[MessageQueue, int]
) -> dict[MessageQueue, int]:
    try:
        return resolve_offsets(spec, earliest, latest)
    except ValueError as error:
        raise ConfigError(f"option {option!r}: {error}") from None
