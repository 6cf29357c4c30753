"""Hostile inputs: a cluster that lies, the call that meets it, and how the call must end."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rmqtools import ConsumeFromWhere, MessageQueue
from rmqtools.errors import RocketMQError
from rmqtools.testing import FakeCluster

MIB = 1024 * 1024
TOPIC = "H"
QUEUE = MessageQueue(TOPIC, "broker-a", 0)
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET

Attack = Callable[[], str]


@dataclass(frozen=True)
class Case:
    """One hostile input.

    Attributes:
        prepare: given a cluster, lets it lie; returns the call that meets the lie.
        ending: part of how the call must end.
        most_seconds: the call's timeout, and one second.
    """

    prepare: Callable[[FakeCluster], Attack]
    ending: str
    most_seconds: float = 4.0

    @contextmanager
    def prepared(self) -> Iterator[Attack]:
        """Prepare a cluster that is ready to lie."""
        with FakeCluster() as cluster:
            cluster.create_topic(TOPIC, queues=1)
            yield self.prepare(cluster)


def ended(call: Callable[[], object]) -> str:
    """Return how a call ends."""
    try:
        return str(call())[:300]
    except RocketMQError as error:
        text = str(error)
        return f"{type(error).__name__} of {len(text)} characters: {text[:300]}"
    except MemoryError:
        return "MemoryError"
