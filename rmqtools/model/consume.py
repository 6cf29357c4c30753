"""The context that listeners get, and the statuses they return.

Source of the names: the enumerations of the same names (Java client).
"""

from dataclasses import dataclass
from enum import StrEnum

from rmqtools.model.queue import MessageQueue

ACK_ALL = 2**31 - 1  # the ack_index that a listener has not changed


class ConsumeConcurrentlyStatus(StrEnum):
    """The answer of a concurrent listener."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


class ConsumeOrderlyStatus(StrEnum):
    """The answer of an orderly listener; COMMIT and ROLLBACK are only for ``auto_commit`` False."""

    SUCCESS = "SUCCESS"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"


@dataclass(slots=True)
class ConsumeContext:
    """The context of a listener's call. The listener may set its fields before it returns.

    Attributes:
        message_queue: the queue of the messages.
        delay_level_when_next_consume: delay of a failed message: 0: the broker chooses, longer with every
            attempt; 1 to 18: that delay level; -1: it becomes a dead letter at once.
        ack_index: index of the last message that succeeded, if not all did; those after it are tried
            again. -1: none succeeded.
        suspend_current_queue_time: orderly: seconds until a failed batch is tried again; None: as configured.
        auto_commit: orderly: False lets the listener commit with the status COMMIT.
        is_orderly: whether the consumer is orderly; set for the listener to read.
    """

    message_queue: MessageQueue
    delay_level_when_next_consume: int = 0
    ack_index: int = ACK_ALL
    suspend_current_queue_time: float | None = None
    auto_commit: bool = True
    is_orderly: bool = False
