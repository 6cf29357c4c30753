"""Schedules a member's rebalancing: at start, at fixed intervals, and at once after a change.

Source of the rules: RebalanceService, MQClientInstance.rebalanceImmediately, rebalanceLater (Java client).
Ours: all changes during a round cause one further round together, whatever the number of topics and queues
that have to be tried again; changed pins cause a round.
"""

import asyncio
import contextlib

from rmqtools.config.consumer import ConsumerConfig
from rmqtools.engine.group.live_strategy import LiveStrategy
from rmqtools.engine.group.rebalance import Rebalance
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger

log = get_logger(__name__)

TRY_AGAIN_DELAY = 0.5  # seconds until refused locks are requested again, and kept queues are released


class Rounds:
    """The rounds of one member, made one at a time."""

    def __init__(self, rebalance: Rebalance, strategy: LiveStrategy, config: ConsumerConfig) -> None:
        self._rebalance = rebalance
        self._strategy = strategy
        self._config = config
        self._wanted = asyncio.Event()
        self._first = asyncio.Event()
        self.count = 0  # rounds made

    def request(self) -> None:
        """Request a round: now, or as soon as the running one has ended."""
        self._wanted.set()

    async def first(self) -> None:
        """Wait until one round has been made, or :meth:`close`."""
        await self._first.wait()

    def close(self) -> None:
        """Note that no more rounds are made: nobody waits for the first one."""
        self._first.set()

    async def run_forever(self) -> None:
        """Make rounds until cancelled."""
        while True:
            self._wanted.clear()
            balanced = await self._run_once()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause(balanced)):
                    await self._wanted.wait()

    def _pause(self, balanced: bool) -> float:
        """Seconds from the end of a round to the next one, unless one is requested."""
        if self._rebalance.must_try_again:
            return TRY_AGAIN_DELAY
        return self._config.rebalance_interval if balanced else self._config.rebalance_min_interval

    async def watch_pins(self) -> None:
        """Fetch pins once, and request a round if they have changed."""
        if await self._strategy.refresh():
            self.request()

    async def _run_once(self) -> bool:
        try:
            await self._strategy.refresh()
            return await self._rebalance.run(self._strategy.now())
        except RocketMQError as error:
            log.warning("rebalance_failed", reason=str(error))
            return False
        except Exception as error:  # a user's strategy may also fail outside its allocate
            log.error("rebalance_failed", strategy=repr(self._strategy), reason=repr(error), exc_info=error)
            return False
        finally:
            self.count += 1
            self._first.set()
