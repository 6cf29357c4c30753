"""When a member rebalances: at start, at fixed intervals, and at once where something has changed.

Source of the rules: RebalanceService, MQClientInstance.rebalanceImmediately, rebalanceLater (Java client).
Ours: changes that come while a round runs make one more round together, however many they are; changed pins
make a round.
"""

import asyncio
from typing import Protocol, runtime_checkable

from rmqtools.clock import as_time
from rmqtools.config_consumer import ConsumerConfig
from rmqtools.engine.client import ClientCore
from rmqtools.engine.pin_store import PinStore
from rmqtools.engine.rebalance import Rebalance
from rmqtools.engine.repeat import repeat_forever
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.policy.allocate.pins import Pins, newest
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy

log = get_logger(__name__)


@runtime_checkable
class Pinnable(Protocol):
    """A strategy that wants to know the group's pins: ``AllocateByPins``, or a user's own."""

    def with_pins(self, pins: Pins | None) -> AllocateMessageQueueStrategy:
        """The same strategy with the pins in force; None: not known yet."""


class LiveStrategy:
    """The strategy as it is now: with the pins that are in force, where it wants pins."""

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
        """Whether pins must be watched."""
        return self._store is not None

    @property
    def pins(self) -> Pins | None:
        """The pins applied in the last round; None: none are wanted, or none are known yet."""
        return self._applied

    async def refresh(self) -> bool:
        """Ask for pins; whether they differ from those applied last."""
        if self._store is None:
            return False
        fetched = await self._store.fetch(self._group, self._pins)
        known = [pins for pins in (self._pins, fetched) if pins is not None]
        self._pins = newest(*known) if known else None  # rounds and watcher ask at once; one may be late
        return self._in_force() != self._applied

    def now(self) -> AllocateMessageQueueStrategy:
        """The strategy to ask in this round."""
        if not isinstance(self._strategy, Pinnable):
            return self._strategy
        self._applied = self._in_force()
        return self._strategy.with_pins(self._applied)

    def _in_force(self) -> Pins | None:
        return None if self._pins is None else self._pins.at(as_time(self._clock.now_ms()))


class Rounds:
    """The rounds of one member, one at a time."""

    def __init__(self, rebalance: Rebalance, strategy: LiveStrategy, config: ConsumerConfig) -> None:
        self._rebalance = rebalance
        self._strategy = strategy
        self._config = config
        self._wanted = asyncio.Event()
        self._first = asyncio.Event()
        self._timers: list[asyncio.TimerHandle] = []
        self.count = 0  # rounds made

    def request(self) -> None:
        """Make a round as soon as the one under way, if any, has ended."""
        self._wanted.set()

    def request_later(self, delay: float) -> None:
        """Make a round in ``delay`` seconds."""
        loop = asyncio.get_running_loop()
        self._timers = [timer for timer in self._timers if timer.when() > loop.time()]
        self._timers.append(loop.call_later(delay, self.request))

    async def first(self) -> None:
        """Wait until one round has been made."""
        await self._first.wait()

    async def run_forever(self) -> None:
        """Make rounds until cancelled."""
        while True:
            self._wanted.clear()
            balanced = await self._run_once()
            interval = self._config.rebalance_interval if balanced else self._config.rebalance_min_interval
            try:
                async with asyncio.timeout(interval):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    async def watch_pins_forever(self) -> None:
        """Look for changed pins, and ask for a round where there are any."""
        await repeat_forever(self._config.pin_poll_interval, self._watch_pins, what="watch_pins")

    def close(self) -> None:
        """Drop the rounds asked for later."""
        for timer in self._timers:
            timer.cancel()

    async def _watch_pins(self) -> None:
        if await self._strategy.refresh():
            self.request()

    async def _run_once(self) -> bool:
        try:
            await self._strategy.refresh()
            return await self._rebalance.run(self._strategy.now())
        except RocketMQError as error:
            log.warning("rebalance_failed", reason=str(error))
            return False
        except Exception as error:  # a user's strategy may fail outside of its allocate, too
            log.error("rebalance_failed", strategy=repr(self._strategy), reason=repr(error), exc_info=error)
            return False
        finally:
            self.count += 1
            self._first.set()
