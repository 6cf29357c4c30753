"""A batch read: ranges fixed on the driver, one Spark partition each; tasks read them as Arrow batches."""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from rmqtools import MessageQueue
from rmqtools.allocate import AllocateByPins, AllocateMessageQueueStrategy, client_address
from rmqtools.clock import SYSTEM_CLOCK, as_time
from rmqtools.errors import ConfigError
from rmqtools.log import get_logger
from spark_connector.options.allocation import queues_of_member
from spark_connector.options.batch_settings import BatchOptions
from spark_connector.options.offsets import Bound
from spark_connector.options.queue_json import place, places
from spark_connector.options.read_settings import ReadOptions
from spark_connector.options.selection import TopicPattern
from spark_connector.read.keyed import KeyTask, plan_key_tasks, read_key_task
from spark_connector.read.lookup import Lookup
from spark_connector.read.tasks import plan_tasks, read_task
from spark_connector.worker.user_errors import text_first

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqtools import Admin

log = get_logger(__name__)


class RocketMQBatchReader(DataSourceReader):  # type: ignore[misc]  # pyspark's types are not followed
    """Reads ``[start, end)`` of every queue that is selected.

    Spark plans once per ``load()``, in a different process than the tasks. A partition carries its whole
    range, so a retried task, and every action on the DataFrame, reads the same messages.
    """

    def __init__(self, options: BatchOptions) -> None:
        self._options = options

    @text_first()
    def partitions(self) -> list[InputPartition]:
        """Fetch the queues' offsets from brokers and cut them into ranges.

        Raises:
            TopicNotFoundError: a topic has no route.
            PermissionDeniedError: a topic may not be read.
            ValueError: offsets that are not stored, queues that do not exist, a start after the end, a
                missing group of option ``readGroup``.
        """
        read = self._options.read
        lookup = Lookup(read)
        if self._options.look_up is not None:
            tasks = plan_key_tasks(self._options.look_up, self._queues(lookup))
            return [InputPartition(task) for task in tasks]
        queues = self._queues(lookup)
        lookup.check_read_group(queues)
        stored = lookup.stored(queues)
        lookup.check_sql(stored)
        begin = lookup.resolve(self._options.start, stored)
        end = lookup.resolve(self._options.end, stored, is_start=False)
        _check_order(begin, end, self._options.start, self._options.end)
        return [InputPartition(task) for task in plan_tasks(read, begin, end)]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Yield the messages of one partition."""
        if partition.value is None:  # Spark's replacement for an empty list of partitions
            return
        with text_first():
            task = partition.value
            read = read_key_task if isinstance(task, KeyTask) else read_task
            yield from read(self._options.read, task)

    def _queues(self, lookup: Lookup) -> list[MessageQueue]:
        read = self._options.read
        queues = lookup.queues()
        if not queues and isinstance(read.selection, TopicPattern):
            raise ConfigError(
                f"option 'topicPattern' = {read.selection.pattern!r}: no topic matches; it must match whole "
                "names, and begin with %RETRY% or %DLQ% to mean such topics"
            )
        if read.allocation is None or read.allocation.as_member is None:
            return queues
        return fetch_queues_of_member(lookup.blocking_admin, read, queues)


def _check_order(
    begin: dict[MessageQueue, int], end: dict[MessageQueue, int], start_bound: Bound, end_bound: Bound
) -> None:
    for queue in sorted(begin):
        if begin[queue] > end[queue]:
            raise ConfigError(
                f"{place(queue)} would be read from {begin[queue]} to {end[queue]}: set {start_bound.option} "
                f"at or before {end_bound.option}"
            )


def fetch_queues_of_member(
    admin: "Admin", options: ReadOptions, queues: Collection[MessageQueue]
) -> list[MessageQueue]:
    """Return the ``queues`` that member ``asMember`` owns, or would own by ``allocator``; sorted.

    Raises:
        ConfigError: the group has no such member, or several at its address.
    """
    allocation, group = options.allocation, options.group
    assert allocation is not None
    assert allocation.as_member is not None
    assert group is not None  # the settings have checked it
    client_ids = admin.fetch_consumer_ids(group)
    member = _member(allocation.as_member, group, client_ids)
    if allocation.allocator is None:
        held = admin.fetch_running_info(group, member).queues
        owned = {queue.without_namespace(options.client.namespace) for queue in held}
        mine = sorted(owned.intersection(queues))
    else:
        strategy = _in_force(admin, allocation.strategy, group)
        mine = sorted(queues_of_member(strategy, group, member, queues, client_ids))
    unread = set(queues) - set(mine)
    log.warning("reading_as_member", member=member, group=group, left_unread=places(unread))
    return mine


def _in_force(
    admin: "Admin", strategy: AllocateMessageQueueStrategy, group: str
) -> AllocateMessageQueueStrategy:
    """If the strategy follows the group's pins, return it with the current ones; else return it unchanged."""
    if not isinstance(strategy, AllocateByPins):
        return strategy
    return strategy.with_pins(admin.fetch_pins(group).at(as_time(SYSTEM_CLOCK.now_ms())))


def _member(wanted: str, group: str, client_ids: Sequence[str]) -> str:
    """Find a member by client id, or by its address if only one member has it."""
    if wanted in client_ids:
        return wanted
    at_address = [one for one in client_ids if str(client_address(one)) == wanted]
    if len(at_address) == 1:
        return at_address[0]
    known = ", ".join(client_ids) or "none"
    problem = "several members have that address" if at_address else "no such member"
    raise ConfigError(f"option 'asMember' = {wanted!r}: {problem} in group {group!r}; its members: {known}")
