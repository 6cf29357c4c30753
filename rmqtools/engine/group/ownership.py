"""Keeps a member in its group and its queues held: heartbeats, rounds, locks, stored offsets.

:class:`Rounds` schedules rebalancing: at start, at fixed intervals, and at once after a change.

Source of the rules: DefaultMQPushConsumerImpl.start, RebalanceService, MQClientInstance.startScheduledTask,
rebalanceImmediately, rebalanceLater (Java client). Ours: all changes during a round cause one further round
together, whatever the number of topics and queues that have to be tried again; changed pins cause a round.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from functools import partial

from rmqtools.config.consumer import ConsumerConfig
from rmqtools.engine.connection.background import MergedWork
from rmqtools.engine.group.live_strategy import LiveStrategy
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.queue_locks import LOCK_INTERVAL
from rmqtools.engine.group.rebalance import Rebalance
from rmqtools.errors import RemotingConnectError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.observer import ConsumerFigures, Observer
from rmqtools.policy.endpoint.features import PINS, Feature

log = get_logger(__name__)

_FIGURES_INTERVAL = 1.0  # seconds between two reports to telemetry
_FIRST_ROUND_PATIENCE = 10.0  # seconds
TRY_AGAIN_DELAY = 0.5  # seconds until refused locks are requested again, and kept queues are released

QueueListener = Callable[[str, Collection[MessageQueue], Collection[MessageQueue]], None]


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


class Ownership:
    """The group membership of one consumer, from joining to leaving."""

    def __init__(
        self,
        member: Member,
        *,
        start_offset: Callable[[MessageQueue], Awaitable[int]],
        report_queues: QueueListener | None = None,
        kind: type[Rebalance] = Rebalance,
        needs: Collection[Feature] = (),
    ) -> None:
        """Create it; nothing is sent before :meth:`join`.

        Args:
            member: the member that joins.
            start_offset: see :class:`Rebalance`.
            report_queues: called with plain names when the queues held of a topic have changed.
            kind: class that computes the share.
            needs: what every broker of the topics must support; :meth:`join` checks them.
        """
        self._member = member
        self._report_queues = report_queues
        self._needs = [*needs, PINS] if member.strategy.wants_pins else list(needs)
        rebalance = kind(member, start_offset=start_offset, queues_changed=self._queues_changed)
        self.rounds = Rounds(rebalance, member.strategy, member.config)
        self._changes = 0
        self._subscription_work = MergedWork(
            member.client.background, "subscription_heartbeat", self._send_subscriptions
        )
        member.subscriptions.on_change(self._send_subscriptions_soon)

    async def join(self) -> None:
        """Announce the member to brokers and start the rounds.

        Raises:
            UnsupportedError: a proxy, or a broker that is too old, lacks a feature that the member needs.
        """
        member = self._member
        member.started_ms = member.client.clock.now_ms()
        await member.subscriptions.find_routes()
        await self._check_servers()
        await member.membership.join(member.data, self.rounds.request)
        member.client.routes.on_change(self._route_changed)
        self._spawn_loops()
        if (observer := member.client.observer) is not None:
            interval, report = _FIGURES_INTERVAL, partial(self._report_figures, observer)
            member.client.background.spawn_repeated("figures", interval, report)

    async def settle(self) -> None:
        """Wait for the first round, until :meth:`stop`, and 10 s at most; rounds go on in the background."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_ROUND_PATIENCE):
                await self.rounds.first()

    async def _report_figures(self, observer: Observer) -> None:
        figures = consumer_figures(self._member, rebalances=self._changes)
        observer.consumer_state(self._member.identity, figures)

    async def _check_servers(self) -> None:
        client = self._member.client
        for feature in self._needs:
            client.endpoint.require(feature)
            if feature.since:
                for broker_name, addr in client.routes.masters().items():
                    await self._check_version(feature, broker_name, addr)

    async def _check_version(self, feature: Feature, broker_name: str, addr: str) -> None:
        try:
            await self._member.client.versions.check(feature, broker_name=broker_name, addr=addr)
        except RemotingConnectError as error:  # its queues wait until it is back, as those of any member
            log.warning("broker_version_unknown", broker=broker_name, reason=str(error))

    def _spawn_loops(self) -> None:
        member, background = self._member, self._member.client.background
        background.spawn_loop("rebalance", self.rounds.run_forever)
        background.spawn_loop("look_for_routes", member.subscriptions.look_for_routes_forever)
        interval = member.config.persist_consumer_offset_interval
        background.spawn_repeated("persist_offsets", interval, self._persist)
        if member.strategy.wants_pins:
            background.spawn_repeated("watch_pins", member.config.pin_poll_interval, self.rounds.watch_pins)
        if member.is_orderly:
            background.spawn_repeated("renew_locks", LOCK_INTERVAL, member.held.renew_locks)

    async def stop(self) -> None:
        """Stop the rounds. Queues stay as they are until they are given up."""
        await self._member.client.stop_tasks()
        self.rounds.close()
        if (observer := self._member.client.observer) is not None:
            observer.consumer_state(self._member.identity, None)

    def _send_subscriptions_soon(self) -> None:
        """If the consumer runs, send changed subscriptions to the brokers at once, several together."""
        if self._member.client.is_open:
            self._member.membership.update(self._member.data)
            self._subscription_work.request()

    async def _send_subscriptions(self) -> None:
        await self._member.subscriptions.find_routes()
        await self._member.client.send_heartbeats()
        self.rounds.request()

    def _route_changed(self, topic: str) -> None:
        if topic in self._member.subscriptions:
            self.rounds.request()

    def _queues_changed(
        self, topic: str, all_queues: Collection[MessageQueue], mine: Collection[MessageQueue]
    ) -> None:
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return
        self._changes += 1
        log.info("queues_changed", group=self._member.group, topic=topic, held=len(mine), all=len(all_queues))
        if self._report_queues is not None:
            names = self._member.names
            plain = [[names.plain_queue(queue) for queue in sorted(given)] for given in (all_queues, mine)]
            self._report_queues(names.plain_topic(topic), plain[0], plain[1])

    async def _persist(self) -> None:
        await self._member.offsets.persist(list(self._member.held.pulled))


def consumer_figures(member: Member, *, rebalances: int) -> ConsumerFigures:
    """Read a member's state. The lag of popped queues is unknown to their members."""
    queues: Counter[str] = Counter(queue.topic for queue in member.held.queues())
    lag: Counter[str] = Counter()
    working = member.held.working()
    for held in working:
        lag[held.queue.topic] += held.lag
    return ConsumerFigures(
        queues=_plain(member, queues),
        lag=_plain(member, lag),
        cached_messages=sum(held.count for held in working),
        cached_bytes=sum(held.cached_bytes for held in working),
        rebalances=rebalances,
    )


def _plain(member: Member, counts: Counter[str]) -> dict[str, int]:
    """Plain topic names; the retry topic of the group keeps its prefix."""
    names = member.names
    return {
        topic if topic.startswith(RETRY_GROUP_TOPIC_PREFIX) else names.plain_topic(topic): count
        for topic, count in counts.items()
    }
