"""What becomes of a message whose consumption failed.

Concurrently: it is sent back to its broker (CONSUMER_SEND_MSG_BACK), which stores it for the group's retry
topic with a delay, or after too many tries for the dead-letter topic. Where that fails, the listener gets it
again from here.

In order: its queue waits and the message is tried again in place. Only a message that was tried too often
leaves the queue: sent back with :data:`NO_MORE_TRIES`, it becomes a dead letter.

Source of the rules: ConsumeMessageConcurrentlyService, ConsumeMessageOrderlyService,
DefaultMQPushConsumerImpl.sendMessageBack and resetRetryAndNamespace (Java client);
AbstractSendMessageProcessor.consumerSendMsgBack (broker).
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from rmqtools.errors import ConfigError
from rmqtools.model import message_const as const
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.names import retry_topic

DEFAULT_MAX_RECONSUME_TIMES = 16
UNLIMITED_RECONSUME_TIMES = 2**31 - 1
NO_MORE_TRIES = -1  # as delay level: at once a dead letter
_MIN_SUSPEND, _MAX_SUSPEND = 0.010, 30.0


class OrderlyStep(Enum):
    """What is done with the messages a listener in order was given.

    COMMIT: they and all taken before are consumed, go on.
    HOLD: nothing is committed yet, go on; a later COMMIT or ROLLBACK is for these too.
    ROLLBACK: all taken since the last commit go back into the queue, which waits.
    RETRY: see :func:`split_exhausted`. While some are to be tried again, all go back and the queue waits;
    else COMMIT, or HOLD without auto commit.
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
    """How often a message may be tried again; -1 is the default: 16, in order without end.

    Raises:
        ConfigError: less than -1.
    """
    if configured < -1:
        raise ConfigError(f"max_reconsume_times={configured}: want 0 or more, or -1 for the default")
    if configured == -1:
        return UNLIMITED_RECONSUME_TIMES if orderly else DEFAULT_MAX_RECONSUME_TIMES
    return configured


def orderly_step(status: ConsumeOrderlyStatus | None, *, auto_commit: bool = True) -> OrderlyStep:
    """What follows from a listener's answer; None: it raised, or answered nothing.

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
    """Of those a listener was given in any order, the ones to be tried again."""
    if status is ConsumeConcurrentlyStatus.RECONSUME_LATER:
        return messages
    return messages[max(ack_index, -1) + 1 :]


def split_exhausted(
    messages: Sequence[MessageExt], max_times: int
) -> tuple[tuple[MessageExt, ...], tuple[MessageExt, ...]]:
    """Those to try again, and those tried too often: send these back with :data:`NO_MORE_TRIES`.

    One that cannot be sent is tried again like the others; pass it through :func:`tried_again`. In Java a
    batch with one message to try again is given to the listener again whole.
    """
    again = tuple(tried_again(message) for message in messages if message.reconsume_times < max_times)
    return again, tuple(message for message in messages if message.reconsume_times >= max_times)


def tried_again(message: MessageExt) -> MessageExt:
    """The message with one more try counted."""
    return replace(message, reconsume_times=message.reconsume_times + 1)


def suspend_seconds(wanted: float | None, default: float) -> float:
    """How long a queue in order waits: between 10 ms and 30 s; None: the consumer's default."""
    return min(max(default if wanted is None else wanted, _MIN_SUSPEND), _MAX_SUSPEND)


def original_topic(message: MessageExt, group: str) -> str:
    """The topic a message was sent to, also where it comes from the group's retry topic."""
    if message.topic != retry_topic(group):
        return message.topic
    return message.properties.get(const.PROPERTY_RETRY_TOPIC, message.topic)
