"""Spark tasks of a read: planned on the driver, carried to the task with their ranges, read there."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rmqtools import Client, MessageQueue, QueueRange
from rmqtools.allocate import client_address
from rmqtools.errors import BrokerError, DataLossError, TopicNotFoundError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from spark_connector.options.allocation import Allocation, share_queues
from spark_connector.options.read_settings import ReadOptions
from spark_connector.read.loss import REMEDY
from spark_connector.read.planning import gather_ranges, plan_ranges
from spark_connector.worker.clients import borrowed_client, client_of
from spark_connector.worker.gc_freeze import freeze_once

if TYPE_CHECKING:
    import pyarrow as pa

log = get_logger(__name__)

ROWS_PER_STREAM_TASK: Final = 1000  # starting a Python task takes as long as reading 5,000 messages or more


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The ranges that one task reads in sequence; ``reader_id`` is set if readers share queues."""

    ranges: tuple[QueueRange, ...]
    reader_id: str | None = None


def plan_tasks(
    options: ReadOptions,
    begin: Mapping[MessageQueue, int],
    end: Mapping[MessageQueue, int],
    *,
    rows_per_task: int = 1,
) -> list[ReadTask]:
    """Cut ``[begin, end)`` of every queue into tasks.

    With readers, each one with queues to read gets a task. Otherwise each range is a task, but without
    options on partitions, several ranges share one while they have fewer than ``rows_per_task`` messages
    together.

    Raises:
        ValueError: a queue would end before it begins.
        ConfigError: the allocation does not give every queue to exactly one reader.
    """
    allocation = options.allocation
    if allocation is None or not allocation.readers:
        wanted, largest = options.min_partitions, options.max_records_per_partition
        ranges = plan_ranges(begin, end, min_partitions=wanted, max_records=largest)
        rows = rows_per_task if wanted is None and largest is None else 1
        return [ReadTask(group) for group in gather_ranges(ranges, rows)]
    address = _address(client_of(options.client))
    return _shared_tasks(allocation, address, plan_ranges(begin, end), begin)


def read_task(options: ReadOptions, task: ReadTask) -> Iterator["pa.RecordBatch"]:
    """Yield the messages of a task. Runs on the executor."""
    from rmqtools.arrow import read_ranges, select_columns  # the driver's processes plan without it

    schema = select_columns(*options.columns)
    with borrowed_client(options.client) as client:
        if task.reader_id and options.allocation and options.allocation.verify_host:
            _verify_host(task.reader_id, client)
        try:
            yield from read_ranges(
                client,
                task.ranges,
                schema=schema,
                tags=options.tags,
                sql=options.sql,
                fail_on_data_loss=options.fail_on_data_loss,
                corrupt_body=options.corrupt_body,
            )
        except DataLossError as error:
            raise DataLossError(f"{error}: {REMEDY}") from error
        except TopicNotFoundError as error:
            raise TopicNotFoundError(f"{error}: {REMEDY}") from error
        except BrokerError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            raise DataLossError(f"{error}: {REMEDY}") from error
    freeze_once()


def _shared_tasks(
    allocation: Allocation, address: str, ranges: Iterable[QueueRange], queues: Iterable[MessageQueue]
) -> list[ReadTask]:
    by_queue = {range_.queue: range_ for range_ in ranges}
    shares = share_queues(allocation, list(queues), allocation.ids_at(address))
    tasks = [
        ReadTask(tuple(by_queue[queue] for queue in share if queue in by_queue), client_id)
        for client_id, share in shares.items()
    ]
    return [task for task in tasks if task.ranges]


def _verify_host(reader_id: str, client: Client) -> None:
    wanted, address = str(client_address(reader_id)), _address(client)
    if wanted != address:
        log.warning("reader_on_another_host", reader=reader_id, wanted=wanted, address=address)


def _address(client: Client) -> str:
    """Return this machine's address towards the cluster, taken from the client id."""
    return client.client_id.rpartition("@")[0]
