"""The message types of topics (5.x): which messages a proxy lets into a topic."""

from enum import StrEnum
from typing import Literal, TypeAlias


class TopicMessageType(StrEnum):
    """Purpose of a topic. A proxy refuses other messages; brokers reached directly take all.

    A message is TRANSACTION in a transaction, else DELAY with a delay, else FIFO with a sharding key, else
    PRIORITY with a priority, else NORMAL. A topic made without a type is NORMAL.
    Source of the rule: TopicMessageType.parseFromMessageProperty, DefaultTopicMessageTypeValidator
    (proxy 5.5.0).
    """

    UNSPECIFIED = "UNSPECIFIED"
    NORMAL = "NORMAL"
    FIFO = "FIFO"
    DELAY = "DELAY"
    TRANSACTION = "TRANSACTION"
    PRIORITY = "PRIORITY"
    LITE = "LITE"
    MIXED = "MIXED"
    """Takes messages of every type; brokers allow it with ``enableMixedMessageType=true``."""


TopicTypeName: TypeAlias = Literal[
    "UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE", "MIXED"
]
"""The texts of the members."""
