"""A consumer's report on itself, for a broker that asks on behalf of an administrator.

Source of the rules: DefaultMQPushConsumerImpl.consumerRunningInfo, DefaultLitePullConsumerImpl.
consumerRunningInfo, MQClientInstance.consumerRunningInfo, ProcessQueue.fillProcessQueueInfo (Java client).
Ours: the report includes the version of rmqtools, the time of the machine, the strategy's name, the pins'
version, the number of messages passed over, the longest running listener call, the last error of a listener,
and queues that wait for a failing message; the stacks include the tasks of the event loop.
"""

import asyncio
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any

from rmqtools.engine.group.member import Member
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.codes import MQ_VERSION_NAME
from rmqtools.model.group import ConsumeType
from rmqtools.model.group_view import WaitingQueue
from rmqtools.model.queue import java_order
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
from rmqtools.policy.group_member import (
    PROP_RMQTOOLS_LAST_ERROR,
    PROP_RMQTOOLS_LONGEST_CALL,
    PROP_RMQTOOLS_NOW_MS,
    PROP_RMQTOOLS_PASSED_OVER,
    PROP_RMQTOOLS_PIN_VERSION,
    PROP_RMQTOOLS_STRATEGY,
    PROP_RMQTOOLS_VERSION,
    PROP_RMQTOOLS_WAITING,
    format_waiting,
)
from rmqtools.version import __version__

_MIB = 1024 * 1024
_MOST_WAITING = 100
_MOST_TASKS = 1000  # some 200 bytes each; brokers pass on 16 MB
_JAVA_NAMES = {  # our settings, by the names that Java's consumers report
    "group": "consumerGroup",
    "message_model": "messageModel",
    "consume_from": "consumeFromWhere",
    "pull_batch_size": "pullBatchSize",
    "pull_threshold_for_queue": "pullThresholdForQueue",
    "pull_threshold_for_all": "pullThresholdForAll",
    "consume_threads": "consumeThreadMax",
    "consume_message_batch_max_size": "consumeMessageBatchMaxSize",
    "consume_concurrently_max_span": "consumeConcurrentlyMaxSpan",
    "max_reconsume_times": "maxReconsumeTimes",
    "client_rebalance": "clientRebalance",
    "pop_batch_nums": "popBatchNums",
    "pop_threshold_for_queue": "popThresholdForQueue",
}


def running_info(member: Member, *, with_jstack: bool = False) -> ConsumerRunningInfo:
    """Return the state of a consumer; queues and topics have wire names, in Java's order."""
    subscriptions = sorted(
        member.subscriptions.values(), key=lambda data: java_order(f"{data.topic}@{data.sub_string}")
    )
    pulls, pops = member.held.pulled, member.held.popped
    return ConsumerRunningInfo(
        properties=_properties(member),
        subscription_set=tuple(subscriptions),
        mq_table={queue: _queue_info(member, pulls[queue]) for queue in sorted(pulls)},
        mq_pop_table={queue: pops[queue].info() for queue in sorted(pops)},
        status_table={data.topic: _status(member, data.topic) for data in subscriptions},
        jstack=f"{thread_stacks()}\n{task_stacks()}" if with_jstack else None,
    )


def thread_stacks() -> str:
    """Return the stack of every thread of this process."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = (
        f"{names.get(ident, '?')}  TID: {ident}\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
    )
    return "\n".join(parts)


def task_stacks() -> str:
    """Return where each task of the running loop waits, its outermost coroutine first."""
    tasks = sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    parts = [f"{task.get_name()}  task\n{_waits(task.get_coro())}" for task in tasks[:_MOST_TASKS]]
    left = len(tasks) - _MOST_TASKS
    return "\n".join([*parts, f"and {left} more tasks\n"] if left > 0 else parts)


def _waits(coroutine: Any) -> str:
    """Format the frames of a coroutine, and of those that it awaits: a suspended one shows only its own."""
    frames: list[traceback.FrameSummary] = []
    while coroutine is not None:
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(coroutine, f"{kind}_frame")), None)
        if kind is None:  # a future, or an object with __await__
            break
        if (frame := getattr(coroutine, f"{kind}_frame")) is not None:
            frames.append(
                traceback.FrameSummary(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
            )
        coroutine = getattr(coroutine, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
    return "".join(traceback.StackSummary.from_list(frames).format())


def _properties(member: Member) -> Mapping[str, str]:
    config, pins = member.config, member.strategy.pins
    told = {java: _text(getattr(config, ours)) for ours, java in _JAVA_NAMES.items() if hasattr(config, ours)}
    told |= {
        PROP_NAMESERVER_ADDR: "".join(f"{addr};" for addr in member.client.remoting.name_servers.addrs),
        PROP_CONSUME_TYPE: member.consume_type,
        PROP_CLIENT_VERSION: MQ_VERSION_NAME,
        PROP_CONSUMER_START_TIMESTAMP: str(member.started_ms),
        PROP_RMQTOOLS_VERSION: __version__,
        PROP_RMQTOOLS_STRATEGY: member.strategy.name,
        PROP_RMQTOOLS_PASSED_OVER: str(member.rates.passed_over),
        PROP_RMQTOOLS_NOW_MS: str(member.client.clock.now_ms()),
    }
    if member.consume_type is ConsumeType.CONSUME_PASSIVELY:
        told[PROP_CONSUME_ORDERLY] = _text(member.is_orderly)
        told[PROP_THREADPOOL_CORE_SIZE] = told["consumeThreadMax"]
        told[PROP_RMQTOOLS_LONGEST_CALL] = f"{member.longest_call():.1f}"
        told[PROP_RMQTOOLS_WAITING] = format_waiting(_waiting(member))
    if member.rates.last_error is not None:
        told[PROP_RMQTOOLS_LAST_ERROR] = member.rates.last_error
    if pins is not None:
        told[PROP_RMQTOOLS_PIN_VERSION] = str(pins.version)
    return dict(sorted(told.items()))


def _waiting(member: Member) -> list[WaitingQueue]:
    """Queues whose first message has failed and holds up those behind it: only if consumed in order."""
    if not member.is_orderly:
        return []
    first = ((held, next(iter([*held.taken, *held.held]), None)) for held in member.held.pulled.values())
    failed = [(held.queue, message) for held, message in first if message and message.reconsume_times]
    return [
        WaitingQueue(queue=queue, queue_offset=message.queue_offset, times=message.reconsume_times)
        for queue, message in sorted(failed, key=lambda one: one[0])[:_MOST_WAITING]
    ]


def _queue_info(member: Member, held: ProcessQueue) -> ProcessQueueInfo:
    noted = member.offsets.read_memory(held.queue)
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


def _status(member: Member, topic: str) -> ConsumeStatus:
    return member.rates.status(member.names.plain_topic(topic), member.client.clock.monotonic())


def _text(value: Any) -> str:
    """Format a value as Java does."""
    return str(value).lower() if isinstance(value, bool) else str(value)
