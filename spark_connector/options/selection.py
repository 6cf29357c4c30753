"""The selection of a read: named topics, a topic pattern, or chosen queues; pure."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from rmqtools import MessageQueue
from rmqtools.model.names import (
    DLQ_GROUP_TOPIC_PREFIX,
    LMQ_PREFIX,
    RETRY_GROUP_TOPIC_PREFIX,
    is_system_topic,
)
from rmqtools.model.staged import OWN_TOPIC_PREFIX, decisions_topic
from rmqtools.unknown_name import nearest_name

_ASKED_FOR_PREFIXES: Final = (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)


@dataclass(frozen=True, slots=True)
class Topics:
    """All queues of topics given by name."""

    topics: tuple[str, ...]

    def covers(self, queue: MessageQueue) -> bool:
        """Return whether the selection includes a queue."""
        return queue.topic in self.topics


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """All queues of the topics whose whole name matches a regular expression."""

    pattern: str

    def select(self, topics: Iterable[str], *, reserved: Iterable[str]) -> list[str]:
        """Select the topics that match, sorted.

        Retry and dead-letter topics match only if the pattern itself begins with their prefix, as in
        ``%DLQ%.*``; RocketMQ's system topics never match, nor do topics of staged rows and of decisions.

        Args:
            topics: all topics that the name server knows; with a namespace its own, without it.
            reserved: names of clusters and brokers: each has a topic of that name.
        """
        matches = re.compile(self.pattern).fullmatch
        reserved = set(reserved)
        known = {*topics}
        staging = {name for name in known if decisions_topic(name) in known}
        return sorted(name for name in known - reserved - staging if matches(name) and self._may_mean(name))

    def covers(self, queue: MessageQueue) -> bool:
        """Return whether a queue's topic matches."""
        return re.fullmatch(self.pattern, queue.topic) is not None and self._may_mean(queue.topic)

    def _may_mean(self, topic: str) -> bool:
        for prefix in _ASKED_FOR_PREFIXES:
            if topic.startswith(prefix):
                return self.pattern.startswith(prefix)
        return not (is_system_topic(topic) or topic.startswith((LMQ_PREFIX, "RMQ_SYS_", OWN_TOPIC_PREFIX)))


@dataclass(frozen=True, slots=True)
class Assign:
    """Chosen queues."""

    queues: frozenset[MessageQueue]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of the queues, sorted."""
        return tuple(sorted({queue.topic for queue in self.queues}))

    def covers(self, queue: MessageQueue) -> bool:
        """Return whether the selection includes a queue."""
        return queue in self.queues


Selection: TypeAlias = Topics | TopicPattern | Assign
EVERY_TOPIC: Final = TopicPattern(".*")


def similar_topics(missing: Iterable[str], known: Collection[str]) -> str:
    """Return `` (did you mean 'x'?)`` for missing topics, to be added to a text; "" if no topic is alike."""
    found = (nearest_name(topic, known) for topic in missing)
    names = [repr(topic) for topic in dict.fromkeys(found) if topic is not None]
    return f" (did you mean {', '.join(names)}?)" if names else ""


def parse_pattern(text: str) -> TopicPattern:
    """Parse a regular expression.

    Raises:
        ValueError: invalid; the text names the place.
    """
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from error
    if not text:
        raise ValueError("it is empty")
    return TopicPattern(text)
