"""Decides what happens to a message whose consumption failed: when it is delivered again, and how often.

Concurrent: it is sent back to its broker (CONSUMER_SEND_MSG_BACK). The broker stores it for the group's retry
topic with a delay, or after too many attempts for the dead-letter topic. If that fails, this member gives it
to the listener again.

Orderly: its queue waits, and the message is tried again in place. Only a message without attempts left
leaves the queue: sent back with :data:`NO_MORE_TRIES`, it becomes a dead letter.

A message whose body cannot be read reaches its listener alone: when it fails, no good message is tried again
with it. In order it becomes a dead letter after the first failure, because it would block its queue. In Java
such a message has its body as stored, or never arrives.

Popped: the broker hides it for longer, and delivers it again then.

Source of the rules: ConsumeMessageConcurrentlyService, ConsumeMessageOrderlyService,
DefaultMQPushConsumerImpl.sendMessageBack and resetRetryAndNamespace, getPopDelayLevel;
ConsumeMessagePopConcurrentlyService.changePopInvisibleTime, checkNeedAckOrDelay (Java client);
AbstractSendMessageProcessor.consumerSendMsgBack (broker).
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import takewhile
from operator import attrgetter

from rmqtools.errors import ConfigError
from rmqtools.model import message_const as const
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.names import retry_topic

DEFAULT_MAX_RECONSUME_TIMES = 16
UNLIMITED_RECONSUME_TIMES = 2**31 - 1
NO_MORE_TRIES = -1  # as delay level: becomes a dead letter at once
_body_error_of = attrgetter("body_error")
_MIN_SUSPEND = 0.010  # seconds
_MAX_SUSPEND = 30.0
_POP_DELAYS = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)  # seconds


class OrderlyStep(Enum):
    """The next step for the messages that an orderly listener got.

    COMMIT: these and all taken before are consumed; continue.
    HOLD: commit nothing yet and continue; a later COMMIT or ROLLBACK includes these.
    ROLLBACK: all taken since the last commit go back into the queue, which waits.
    RETRY: see :func:`split_exhausted`. If a message is to be tried again, all go back and the queue waits;
    otherwise COMMIT, or HOLD without auto commit.
    """

    COMMIT = "COMMIT"
    HOLD = "HOLD"
    ROLLBACK = "ROLLBACK"
    RETRY = "RETRY"


_STEPS_WITHOUT_AUTO_COMMIT = {
    ConsumeOrderlyStatus.SUCCESS: OrderlyStep.HOLD,
    ConsumeOrderlyStatus.COMMIT: OrderlyStep.COMMIT,
    ConsumeOrderlyStatus.ROLLBACK: OrderlyStep.ROLLBACK,
    ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT: OrderlyStep.RETRY,
}


def max_reconsume_times(configured: int, *, orderly: bool = False) -> int:
    """Return how often a message may be tried again; -1 is the default: 16, orderly without limit.

    Raises:
        ConfigError: less than -1.
    """
    if configured < -1:
        raise ConfigError(f"max_reconsume_times={configured}: want 0 or more, or -1 for the default")
    if configured == -1:
        return UNLIMITED_RECONSUME_TIMES if orderly else DEFAULT_MAX_RECONSUME_TIMES
    return configured


def orderly_step(status: ConsumeOrderlyStatus | None, *, auto_commit: bool = True) -> OrderlyStep:
    """Return the step that follows from a listener's answer; None: it raised, or returned nothing.

    With auto commit COMMIT and ROLLBACK both count as success, as in Java.
    """
    status = status or ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
    if not auto_commit:
        return _STEPS_WITHOUT_AUTO_COMMIT[status]
    retry = status is ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
    return OrderlyStep.RETRY if retry else OrderlyStep.COMMIT


def failed_messages(
    messages: Sequence[MessageExt], status: ConsumeConcurrentlyStatus, ack_index: int
) -> Sequence[MessageExt]:
    """Return the messages to be tried again, of those that a concurrent listener got."""
    if status is ConsumeConcurrentlyStatus.RECONSUME_LATER:
        return messages
    return messages[max(ack_index, -1) + 1 :]


def split_exhausted(
    messages: Sequence[MessageExt], max_times: int
) -> tuple[tuple[MessageExt, ...], tuple[MessageExt, ...]]:
    """Return messages to try again, and messages to send back with :data:`NO_MORE_TRIES`.

    A message that cannot be sent back is retried; pass it through :func:`tried_again`. In Java a batch with
    one message to retry is given to the listener again as a whole. A message with an unreadable body always
    counts as tried too often.
    """
    exhausted = tuple(
        message
        for message in messages
        if message.reconsume_times >= max_times or message.body_error is not None
    )
    kept = {id(message) for message in exhausted}
    return tuple(tried_again(message) for message in messages if id(message) not in kept), exhausted


def tried_again(message: MessageExt) -> MessageExt:
    """Return the message with one more try counted."""
    return message.with_values(reconsume_times=message.reconsume_times + 1)


def listener_batches(messages: Sequence[MessageExt], size: int) -> Iterator[Sequence[MessageExt]]:
    """Yield the messages as listeners get them: up to ``size``, one whose body cannot be read alone."""
    start = 0
    while start < len(messages):
        count = listener_count(messages[start : start + size]) if size > 1 else 1
        yield messages[start : start + count]
        start += count


def listener_count(messages: Sequence[MessageExt]) -> int:
    """Return how many of some messages, from the front, a listener gets at once."""
    if not any(map(_body_error_of, messages)):
        return len(messages)
    readable = sum(1 for _ in takewhile(lambda message: message.body_error is None, messages))
    return max(readable, 1)


def suspend_seconds(wanted: float | None, default: float) -> float:
    """Seconds that an orderly queue waits: between 10 ms and 30 s; None: the consumer's default."""
    return min(max(default if wanted is None else wanted, _MIN_SUSPEND), _MAX_SUSPEND)


def pop_delay(reconsume_times: int, delay_level: int = 0) -> float:
    """Seconds until a failed message is delivered again; level 0: longer with every attempt."""
    level = delay_level or reconsume_times
    return float(_POP_DELAYS[min(level, len(_POP_DELAYS) - 1)])


def exhausted_delay(age: float) -> float | None:
    """Return the delay of a message without attempts left, ``age`` seconds old; None: acknowledge it.

    It is still delivered, less and less often, until it is twice as old as the longest delay.
    """
    if age > _POP_DELAYS[-1] * 2:
        return None
    passed = sum(age >= delay for delay in _POP_DELAYS)
    return pop_delay(0, passed) if passed else float(_POP_DELAYS[0])


def original_topic(message: MessageExt, group: str) -> str:
    """Return the topic that a message was first sent to, also if it comes from the group's retry topic."""
    if message.topic != retry_topic(group):
        return message.topic
    return message.properties.get(const.PROPERTY_RETRY_TOPIC, message.topic)
