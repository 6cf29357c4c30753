"""Rules for fetching a queue and handling the answer, for push and pull consumers.

Source of the rules: DefaultMQPushConsumerImpl.pullMessage, DefaultLitePullConsumerImpl.PullTaskImpl (Java
client).

``max_messages_per_second`` delays fetches, not listeners: waiting messages would use up the invisible time of
a pop and fill the cache. No pull is sent ahead while the messages of an earlier pull are not counted.
"""

from typing import Protocol

from rmqtools.config.consumer import PullConsumerConfig, PushConsumerConfig
from rmqtools.engine.consumer.burst_sources import PullSource
from rmqtools.engine.consumer.hand_out import HandOut
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.pop_process_queue import PopProcessQueue
from rmqtools.engine.group.process_queue import HeldAnswer, ProcessQueue
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import PullResult
from rmqtools.policy.flow import MessageRate, PullThresholds, exceeded_threshold


class FetchRate:
    """Keeps the fetches of a consumer within ``max_messages_per_second``, all its queues together."""

    def __init__(self, member: Member) -> None:
        limit = member.config.max_messages_per_second
        self._rate = None if limit is None else MessageRate(limit)
        self._held = member.held
        self._clock = member.client.clock

    @property
    def is_limited(self) -> bool:
        """True if there is a limit. Then no fetch begins before the answer of the one before is counted."""
        return self._rate is not None

    def delay(self) -> float:
        """Seconds until the next fetch may begin; 0: at once."""
        return 0.0 if self._rate is None else self._rate.delay(self._clock.monotonic())

    def batch_size(self, configured: int) -> int:
        """Messages to ask for: at most ``configured``, and a second's worth for all held queues together."""
        if self._rate is None:
            return configured
        return self._rate.batch_size(configured, len(self._held.pulled) + len(self._held.popped))

    def fetched(self, count: int) -> None:
        """Count the messages of an answer against the limit."""
        if self._rate is not None:
            self._rate.fetched(count, self._clock.monotonic())


class FetchPolicy(Protocol):
    """The parts of fetching in which push and pull consumers differ."""

    @property
    def rate(self) -> FetchRate:
        """The limit of messages a second."""

    @property
    def commits_moves(self) -> bool:
        """True if all messages that a queue has held are consumed when it holds none.

        Then the offset at which it continues, if its next one is not stored any more, may be committed.
        """

    def may_pull(self, held: ProcessQueue, *, coming: PullResult | None = None) -> bool:
        """Return whether the queue may be fetched now, and has room for more after ``coming``."""

    def fetched(self, held: ProcessQueue, answer: HeldAnswer) -> None:
        """Handle messages that were just fetched and are already in the queue."""

    def may_burst(self) -> bool:
        """Return whether a queue may be fetched by a listener's thread."""

    def add(self, source: PullSource) -> None:
        """Let a listener's thread pull a queue that holds no messages."""

    def offset_for_pull(self, queue: MessageQueue) -> int | None:
        """Return the consumer offset that a pull carries for the broker to store; None: none."""

    def passed_over(self, held: ProcessQueue) -> None:
        """Handle an answer after which the queue holds no message: all before ``next_offset`` is consumed."""


class Consumption(Protocol):
    """Passes fetched messages to listeners, in any order or in order."""

    def consume(self, held: ProcessQueue, answer: HeldAnswer) -> None:
        """Consume messages that were just fetched."""

    def may_burst(self) -> bool:
        """Return whether a queue may be fetched by a listener's thread."""

    def add(self, source: PullSource) -> None:
        """Let a listener's thread pull a queue that holds no messages."""

    def work_on(self, held: ProcessQueue) -> None:
        """Start to consume a newly held queue."""

    async def close(self, timeout: float) -> None:
        """Start no further listener calls; running ones have ``timeout`` seconds to end."""

    async def watch_timeouts_forever(self) -> None:
        """Check for listeners that take too long."""


class PushFetch:
    """Fetches while listeners keep up; pulls carry the noted offset."""

    commits_moves = True

    def __init__(self, member: Member, config: PushConsumerConfig, consumption: Consumption) -> None:
        self.is_suspended = False
        self.rate = FetchRate(member)
        self.fetched = consumption.consume
        self.add = consumption.add
        self._may_burst = consumption.may_burst
        self.offset_for_pull = member.offsets.offset_for_pull
        self._member = member
        self._config = config
        self._limits = PullThresholds(
            max_count=config.pull_threshold_for_queue,
            max_size_bytes=config.pull_threshold_bytes_for_queue,
            max_span=None if config.orderly else config.consume_concurrently_max_span,
            member_count=config.pull_threshold_for_topic,
            member_size_bytes=config.pull_threshold_bytes_for_topic,
        )

    def may_pull(self, held: ProcessQueue, *, coming: PullResult | None = None) -> bool:
        """See :class:`FetchPolicy`. An unsubscribed topic is refused: it has no tags, so all would match."""
        if self.is_suspended or held.queue.topic not in self._member.subscriptions:
            return False
        if self._member.is_orderly and not held.is_locked:
            return False
        limits, member = self._limits.shared(len(self._member.held.pulled)), self._member.held.cached
        return exceeded_threshold(held.cached(coming), limits, of_member=member) is None

    def may_burst(self) -> bool:
        """See :class:`FetchPolicy`."""
        return not self.rate.is_limited and self._may_burst()

    def may_pop(self, held: PopProcessQueue) -> bool:
        """Return whether a queue may be popped now."""
        if self.is_suspended or held.queue.topic not in self._member.subscriptions:
            return False
        return held.wait_ack_count <= self._config.pop_threshold_for_queue

    def passed_over(self, held: ProcessQueue) -> None:
        """See :class:`FetchPolicy`."""
        self._member.offsets.update(held.queue, held.next_offset, increase_only=True)


class PollFetch:
    """Fetches ahead of polls, up to the limits; offsets are stored only by commits."""

    commits_moves = False  # messages that polls have returned may not be consumed yet

    def __init__(self, member: Member, config: PullConsumerConfig, hand_out: HandOut) -> None:
        self.rate = FetchRate(member)
        self._hand_out = hand_out
        self._cached = member.held.cached
        self._limits = PullThresholds(
            max_count=config.pull_threshold_for_queue,
            max_size_bytes=config.pull_threshold_bytes_for_queue,
            max_span=None,
            member_count=config.pull_threshold_for_all,
            member_size_bytes=config.pull_threshold_bytes_for_all,
        )

    def may_pull(self, held: ProcessQueue, *, coming: PullResult | None = None) -> bool:
        """See :class:`FetchPolicy`."""
        if held.is_paused:
            return False
        return exceeded_threshold(held.cached(coming), self._limits, of_member=self._cached) is None

    def fetched(self, held: ProcessQueue, answer: HeldAnswer) -> None:
        """See :class:`FetchPolicy`."""
        self._hand_out.arrived(held)

    def may_burst(self) -> bool:
        """See :class:`FetchPolicy`: there is no listener."""
        return False

    def add(self, source: PullSource) -> None:
        """See :class:`FetchPolicy`."""
        raise NotImplementedError

    def offset_for_pull(self, queue: MessageQueue) -> int | None:
        """See :class:`FetchPolicy`."""
        return None

    def passed_over(self, held: ProcessQueue) -> None:
        """Do nothing: :meth:`rmqtools.aio.PullConsumer.position` reads the queue itself."""
