"""What a consumer tells of itself when a broker asks on behalf of an administrator.

Source of the rules: DefaultMQPushConsumerImpl.consumerRunningInfo, DefaultLitePullConsumerImpl.
consumerRunningInfo, MQClientInstance.consumerRunningInfo, ProcessQueue.fillProcessQueueInfo (Java client).
Ours: the name of the strategy and the version of the pins.
"""

import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any, Protocol

from rmqtools.config_consumer import ConsumerConfig
from rmqtools.engine.client import ClientCore
from rmqtools.engine.offset_store import OffsetStore
from rmqtools.engine.pop_process_queue import PopProcessQueue
from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.engine.rounds import LiveStrategy
from rmqtools.engine.subscriptions import Subscriptions
from rmqtools.model.codes import MQ_VERSION_NAME
from rmqtools.model.group import ConsumeType
from rmqtools.model.names import without_this_namespace
from rmqtools.model.queue import MessageQueue, java_order
from rmqtools.model.running_info import (
    PROP_CLIENT_VERSION,
    PROP_CONSUME_ORDERLY,
    PROP_CONSUME_TYPE,
    PROP_CONSUMER_START_TIMESTAMP,
    PROP_NAMESERVER_ADDR,
    PROP_THREADPOOL_CORE_SIZE,
    ConsumerRunningInfo,
    ConsumeStatus,
    ProcessQueueInfo,
)
from rmqtools.policy.consume_rates import ConsumeRates
from rmqtools.policy.group_member import PROP_RMQTOOLS_PIN_VERSION, PROP_RMQTOOLS_STRATEGY

_MIB = 1024 * 1024
_JAVA_NAMES = {  # our settings by the names under which Java's consumers tell theirs
    "group": "consumerGroup",
    "message_model": "messageModel",
    "consume_from": "consumeFromWhere",
    "pull_batch_size": "pullBatchSize",
    "pull_threshold_for_queue": "pullThresholdForQueue",
    "consume_threads": "consumeThreadMax",
    "consume_message_batch_max_size": "consumeMessageBatchMaxSize",
    "consume_concurrently_max_span": "consumeConcurrentlyMaxSpan",
    "max_reconsume_times": "maxReconsumeTimes",
    "client_rebalance": "clientRebalance",
    "pop_batch_nums": "popBatchNums",
    "pop_threshold_for_queue": "popThresholdForQueue",
}


class ToldConsumer(Protocol):
    """The consumer whose state is told."""

    config: ConsumerConfig
    client: ClientCore
    offsets: OffsetStore
    subscriptions: Subscriptions
    table: dict[MessageQueue, ProcessQueue]
    pop_table: dict[MessageQueue, PopProcessQueue]
    started_ms: int
    strategy: LiveStrategy
    rates: ConsumeRates
    is_orderly: bool

    @property
    def consume_type(self) -> ConsumeType:
        """Who fetches."""


def running_info(consumer: ToldConsumer, *, with_jstack: bool = False) -> ConsumerRunningInfo:
    """The state of a consumer; queues and topics have their wire names, in Java's order."""
    subscriptions = sorted(
        consumer.subscriptions.values(), key=lambda data: java_order(f"{data.topic}@{data.sub_string}")
    )
    pops = consumer.pop_table
    return ConsumerRunningInfo(
        properties=_properties(consumer),
        subscription_set=tuple(subscriptions),
        mq_table={queue: _queue_info(consumer, consumer.table[queue]) for queue in sorted(consumer.table)},
        mq_pop_table={queue: pops[queue].info() for queue in sorted(pops)},
        status_table={data.topic: _status(consumer, data.topic) for data in subscriptions},
        jstack=thread_stacks() if with_jstack else None,
    )


def thread_stacks() -> str:
    """What every thread of this process does now."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = (
        f"{names.get(ident, '?')}  TID: {ident}\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
    )
    return "\n".join(parts)


def _properties(consumer: ToldConsumer) -> Mapping[str, str]:
    config, pins = consumer.config, consumer.strategy.pins
    told = {java: _text(getattr(config, ours)) for ours, java in _JAVA_NAMES.items() if hasattr(config, ours)}
    told |= {
        PROP_NAMESERVER_ADDR: "".join(f"{addr};" for addr in config.name_servers),
        PROP_CONSUME_TYPE: consumer.consume_type,
        PROP_CLIENT_VERSION: MQ_VERSION_NAME,
        PROP_CONSUMER_START_TIMESTAMP: str(consumer.started_ms),
        PROP_RMQTOOLS_STRATEGY: consumer.strategy.name,
    }
    if consumer.consume_type is ConsumeType.CONSUME_PASSIVELY:
        told[PROP_CONSUME_ORDERLY] = _text(consumer.is_orderly)
        told[PROP_THREADPOOL_CORE_SIZE] = told["consumeThreadMax"]
    if pins is not None:
        told[PROP_RMQTOOLS_PIN_VERSION] = str(pins.version)
    return dict(sorted(told.items()))


def _queue_info(consumer: ToldConsumer, held: ProcessQueue) -> ProcessQueueInfo:
    noted = consumer.offsets.read_memory(held.queue)
    cached = [message.queue_offset for message in held.held] or [0]
    taken = [message.queue_offset for message in held.taken] or [0]
    return ProcessQueueInfo(
        commit_offset=-1 if noted is None else noted,
        cached_msg_min_offset=cached[0],
        cached_msg_max_offset=cached[-1],
        cached_msg_count=len(held.held),
        cached_msg_size_in_mib=held.cached_bytes // _MIB,
        transaction_msg_min_offset=taken[0],
        transaction_msg_max_offset=taken[-1],
        transaction_msg_count=len(held.taken),
        locked=held.is_locked,
        last_lock_timestamp=held.last_lock_ms,
        dropped=held.is_dropped,
        last_pull_timestamp=held.last_pull_ms,
        last_consume_timestamp=held.last_consume_ms,
    )


def _status(consumer: ToldConsumer, topic: str) -> ConsumeStatus:
    plain = without_this_namespace(topic, consumer.config.namespace)
    return consumer.rates.status(plain, consumer.client.clock.monotonic())


def _text(value: Any) -> str:
    """As Java writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
