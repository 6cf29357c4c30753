"""The queue selector that needs chance, which no policy may have."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class SelectMessageQueueByRandom:
    """Any queue. ``random_source`` makes it repeatable."""

    random_source: random.Random = field(default_factory=random.Random, compare=False)

    def __call__(self, queues: Sequence[MessageQueue], message: Message, arg: Any) -> MessageQueue:
        """See the class."""
        return self.random_source.choice(queues)
