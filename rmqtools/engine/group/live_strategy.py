"""The allocation strategy of a member, with the pins currently in force.

Unknown pins are not "no pins": a member that has reached no name server takes no queue.
"""

from typing import Protocol, runtime_checkable

from rmqtools.clock import as_time
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.group.pin_store import PinStore
from rmqtools.policy.allocate.pins import Pins, newest
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy


@runtime_checkable
class Pinnable(Protocol):
    """A strategy that uses the group's pins: ``AllocateByPins``, or a user's own."""

    def with_pins(self, pins: Pins | None) -> AllocateMessageQueueStrategy:
        """Return the same strategy with these pins; None: not known yet."""


class LiveStrategy:
    """The current strategy; if it uses pins, with the pins in force."""

    def __init__(self, strategy: AllocateMessageQueueStrategy, client: ClientCore, group: str) -> None:
        self._strategy = strategy
        self._group = group
        self._clock = client.clock
        self._store = PinStore(client) if isinstance(strategy, Pinnable) else None
        self._pins: Pins | None = None
        self._applied: Pins | None = None

    @property
    def name(self) -> str:
        """The strategy's own name."""
        return self._strategy.name

    @property
    def wants_pins(self) -> bool:
        """True if the strategy uses pins, so that they must be watched."""
        return self._store is not None

    @property
    def pins(self) -> Pins | None:
        """The pins applied in the last round; None: the strategy uses none, or none are known yet."""
        return self._applied

    async def refresh(self) -> bool:
        """Fetch pins; return whether they differ from those applied last."""
        if self._store is None:
            return False
        fetched = await self._store.fetch(self._group, self._pins)
        known = [pins for pins in (self._pins, fetched) if pins is not None]
        self._pins = newest(*known) if known else None  # rounds and the watcher may fetch at once
        return self._in_force() != self._applied

    def now(self) -> AllocateMessageQueueStrategy:
        """Return the strategy to use in this round. Marks the pins in force as applied."""
        if not isinstance(self._strategy, Pinnable):
            return self._strategy
        self._applied = self._in_force()
        return self._strategy.with_pins(self._applied)

    def _in_force(self) -> Pins | None:
        return None if self._pins is None else self._pins.at(as_time(self._clock.now_ms()))
