"""What listeners are told, and what they answer.

Source of the names: the enumerations of the same names (Java client).
"""

from dataclasses import dataclass
from enum import StrEnum

from rmqtools.model.queue import MessageQueue


class ConsumeConcurrentlyStatus(StrEnum):
    """Of a listener that takes messages in any order."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


class ConsumeOrderlyStatus(StrEnum):
    """Of a listener in order; COMMIT and ROLLBACK are for one that commits itself (no auto commit)."""

    SUCCESS = "SUCCESS"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"


@dataclass(slots=True)
class ConsumeContext:
    """What a listener is told of the messages it is given, and may set before it returns.

    Attributes:
        message_queue: the queue they come from.
        delay_level_when_next_consume: for a message that failed: 0 lets the broker choose, longer with
            every try; 1 to 18 is that delay; -1 makes it a dead letter at once.
        ack_index: the last message, counted from 0, that succeeded where not all did; the others are
            tried again. -1: none.
        suspend_current_queue_time: in order: seconds until a failed batch comes again; None: as configured.
        auto_commit: in order: False lets the listener commit itself, by its status COMMIT.
    """

    message_queue: MessageQueue
    delay_level_when_next_consume: int = 0
    ack_index: int = 2**31 - 1
    suspend_current_queue_time: float | None = None
    auto_commit: bool = True
