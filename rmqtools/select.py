"""Queue selectors for ``Producer.send(..., selector=...)``. Any callable of their shape will do.

producer.send(message, selector=SelectMessageQueueByHash(), arg=order_id)
"""

from rmqtools.engine.random_selector import SelectMessageQueueByRandom
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
