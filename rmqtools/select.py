"""Queue selectors for ``Producer.send(..., selector=...)``. Any callable with the same arguments works.

producer.send(message, selector=SelectMessageQueueByHash(), arg=order_id)
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.selectors import (
    MessageQueueSelector,
    SelectMessageQueueByHash,
    SelectMessageQueueByMachineRoom,
)

__all__ = [
    "MessageQueueSelector",
    "SelectMessageQueueByHash",
    "SelectMessageQueueByMachineRoom",
    "SelectMessageQueueByRandom",
]


@dataclass(frozen=True, slots=True)
class SelectMessageQueueByRandom:
    """Selects a random queue. A seeded ``random_source`` makes it repeatable."""

    random_source: random.Random = field(default_factory=random.Random, compare=False)

    def __call__(self, queues: Sequence[MessageQueue], message: Message, arg: Any) -> MessageQueue:
        """See the class."""
        return self.random_source.choice(queues)
