"""The report that a consumer gives when a broker asks on behalf of an administrator.

Source of the names: ConsumerRunningInfo, ProcessQueueInfo, PopProcessQueueInfo, ConsumeStatus, CMResult,
ConsumeMessageDirectlyResult, GetConsumerStatusBody (Java client 5.5.0).
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from rmqtools.model.group import SubscriptionData
from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record

PROP_NAMESERVER_ADDR = "PROP_NAMESERVER_ADDR"
PROP_THREADPOOL_CORE_SIZE = "PROP_THREADPOOL_CORE_SIZE"
PROP_CONSUME_ORDERLY = "PROP_CONSUMEORDERLY"
PROP_CONSUME_TYPE = "PROP_CONSUME_TYPE"
PROP_CLIENT_VERSION = "PROP_CLIENT_VERSION"
PROP_CONSUMER_START_TIMESTAMP = "PROP_CONSUMER_START_TIMESTAMP"


@record
class ProcessQueueInfo:
    """A pulled queue's messages in memory. Times are milliseconds since 1970."""

    commit_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_count: int = 0
    cached_msg_size_in_mib: int = 0
    transaction_msg_min_offset: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_count: int = 0
    locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    dropped: bool = False
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0

    @property
    def fetched(self) -> range:
        """The queue offsets of fetched messages that are not consumed; some may be missing."""
        waiting, consuming = self.cached_msg_count, self.transaction_msg_count
        starts = [self.cached_msg_min_offset] * bool(waiting)
        starts += [self.transaction_msg_min_offset] * bool(consuming)
        end = max(self.cached_msg_max_offset, self.transaction_msg_max_offset) + 1
        return range(min(starts), end) if starts else range(0)


@record
class PopProcessQueueInfo:
    """A popped queue: the number of messages not acknowledged yet."""

    wait_ack_count: int = 0
    dropped: bool = False
    last_pop_timestamp: int = 0


@record
class ConsumeStatus:
    """Rates of pulling and consuming a topic: ``rt`` are milliseconds, ``tps`` messages per second.

    ``consume_failed_msgs`` counts the last hour.
    """

    pull_rt: float = 0.0
    pull_tps: float = 0.0
    consume_rt: float = 0.0
    consume_ok_tps: float = 0.0
    consume_failed_tps: float = 0.0
    consume_failed_msgs: int = 0


@record
class ConsumerRunningInfo:
    """The whole report. Java writes its tables in the order of their keys.

    ``properties`` has the consumer's settings and the PROP_ names of this module. ``jstack`` has the stacks
    of its threads, if they were requested.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    subscription_set: tuple[SubscriptionData, ...] = ()
    mq_table: Mapping[MessageQueue, ProcessQueueInfo] = field(default_factory=dict)
    mq_pop_table: Mapping[MessageQueue, PopProcessQueueInfo] = field(default_factory=dict)
    status_table: Mapping[str, ConsumeStatus] = field(default_factory=dict)
    user_consumer_info: Mapping[str, str] = field(default_factory=dict)
    jstack: str | None = None

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """The queues it holds now, pulled or popped; topics include the namespace."""
        pulled = {queue for queue, state in self.mq_table.items() if not state.dropped}
        popped = {queue for queue, state in self.mq_pop_table.items() if not state.dropped}
        return tuple(sorted(pulled | popped))


class CMResult(StrEnum):
    """The result of a listener for a message that an administrator sent directly."""

    CR_SUCCESS = "CR_SUCCESS"
    CR_LATER = "CR_LATER"
    CR_ROLLBACK = "CR_ROLLBACK"
    CR_COMMIT = "CR_COMMIT"
    CR_THROW_EXCEPTION = "CR_THROW_EXCEPTION"
    CR_RETURN_NULL = "CR_RETURN_NULL"


@record
class ConsumeMessageDirectlyResult:
    """Result of one directed call of a listener: its kind, its error, its duration in milliseconds."""

    order: bool = False
    auto_commit: bool = True
    consume_result: str | None = None
    remark: str | None = None
    spent_time_mills: int = 0


@record
class GetConsumerStatusBody:
    """Consumer offsets in memory: a client's own, or in a broker's answer those of every client id."""

    message_queue_table: Mapping[MessageQueue, int] = field(default_factory=dict)
    consumer_table: Mapping[str, Mapping[MessageQueue, int]] = field(default_factory=dict)
