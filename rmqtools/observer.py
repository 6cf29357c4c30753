"""The seam for telemetry: what clients report to an observer, if one is set. ``rmqtools.otel`` sets one.

A client takes the observer when it is made and keeps it. Without one, a send, a listener call and a poll each
compare one attribute with None and do nothing else.

- A client takes its observer when it is made. Reading the global one per send would cost a lookup, and spans
  would begin without an end.
- Consumers report their state to the observer from their loop. A collecting thread that read the tables
  itself would meet dictionaries that change.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from rmqtools.model.message import Message, MessageExt
from rmqtools.model.record import record
from rmqtools.model.result import SendResult


@record(kw_only=False)
class Identity:
    """Whose work is observed: a producer or consumer group, and its client."""

    group: str
    client_id: str
    namespace: str | None = None


@record
class ConsumerFigures:
    """State of one consumer at this moment.

    Attributes:
        queues: queues held, by topic.
        lag: messages that brokers have and that are not consumed yet, by topic; as of the last answers.
        cached_messages: messages fetched and not consumed yet.
        cached_bytes: bytes of their bodies.
        rebalances: how often the queues held have changed.
    """

    queues: Mapping[str, int]
    lag: Mapping[str, int]
    cached_messages: int
    cached_bytes: int
    rebalances: int


class Sending(Protocol):
    """One call that sends messages."""

    messages: Sequence[Message]
    """The messages to send instead of the given ones: with the context in their properties."""

    def stored(self, results: Sequence[SendResult]) -> None:
        """Note what was stored. An error that leaves the block is noted without this."""


class Processing(Protocol):
    """One call of a listener."""

    def failed(self, status: str) -> None:
        """Note that the listener has failed."""


class Observer(Protocol):
    """Interface of telemetry. Called on event loops, and on threads that send: must not block."""

    def sending(
        self, messages: Sequence[Message], sender: Identity, *, in_transaction: bool = False
    ) -> AbstractContextManager[Sending]:
        """Surround a call that sends; ``in_transaction``: that begins and ends a transaction."""

    def processing(
        self, messages: Sequence[MessageExt], consumer: Identity
    ) -> AbstractContextManager[Processing]:
        """Surround the call of a listener."""

    def received(self, messages: Sequence[MessageExt], consumer: Identity, *, seconds: float) -> None:
        """Note messages that a poll hands out, and how long it took."""

    def consumer_state(self, consumer: Identity, figures: ConsumerFigures | None) -> None:
        """Note the state of a consumer, every second; None: it has ended."""

    def loop_delay(self, seconds: float) -> None:
        """Note how late an event loop was."""


_current: Observer | None = None


def observe(observer: Observer | None) -> None:
    """Set the observer of all clients that are made from now on; None: none."""
    global _current
    _current = observer


def current_observer() -> Observer | None:
    """Return the observer of clients that are made now."""
    return _current
