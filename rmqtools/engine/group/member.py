"""One member of a group: its settings, connections, names, subscriptions, offsets and held queues.

Topics, groups and queues have wire names here (with the namespace), which all members of a group see alike.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config.consumer import ConsumerConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.group.hold_and_release import HeldQueues
from rmqtools.engine.group.live_strategy import LiveStrategy
from rmqtools.engine.group.local_offset_store import LocalFileOffsetStore, default_path, with_stable_name
from rmqtools.engine.group.membership import Membership
from rmqtools.engine.group.offset_store import OffsetStore, RemoteBrokerOffsetStore
from rmqtools.engine.group.queue_locks import QueueLocks
from rmqtools.engine.group.subscriptions import Subscriptions
from rmqtools.errors import ConfigError
from rmqtools.model.group import ConsumerData, ConsumeType
from rmqtools.model.message import MessageExt
from rmqtools.model.names import DEFAULT_CONSUMER_GROUP, with_namespace, without_this_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.observer import Identity
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.consume_rates import ConsumeRates
from rmqtools.policy.redelivery import original_topic
from rmqtools.policy.validate import MAX_GROUP_LENGTH, check_name


class TopicNames:
    """The names of one member's topics. ``group`` is the wire name."""

    def __init__(self, group: str, namespace: str | None) -> None:
        self._group = group
        self._namespace = namespace
        self._popped: dict[str, str] = {}  # retry topic of a popped topic -> that topic, plain

    def wire_topic(self, topic: str) -> str:
        """Return the wire name of a topic."""
        return with_namespace(topic, self._namespace)

    def plain_topic(self, topic: str) -> str:
        """Return the plain name of a topic."""
        return without_this_namespace(topic, self._namespace)

    def wire_queue(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue with its wire name."""
        return replace(queue, topic=self.wire_topic(queue.topic)) if self._namespace else queue

    def plain_queue(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue with its plain name."""
        return queue.without_namespace(self._namespace)

    def was_popped(self, retry_topic: str, topic: str) -> None:
        """Note that this retry topic holds messages of ``topic``, which was popped before (wire names)."""
        self._popped[retry_topic] = self.plain_topic(topic)

    def plain_message(self, message: MessageExt) -> MessageExt:
        """Return a message with its plain topic; for one from a retry topic, the topic it was sent to."""
        topic = self._popped.get(message.topic) or original_topic(message, self._group)
        topic = self.plain_topic(topic)
        return message if topic == message.topic else message.with_topic(topic)


class Member:
    """State shared by the parts of one consumer. Each part has one subject and knows only what it needs."""

    def __init__(
        self,
        config: ConsumerConfig,
        strategy: AllocateMessageQueueStrategy,
        consume_type: ConsumeType,
        *,
        is_orderly: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        check_name("consumer group", config.group, MAX_GROUP_LENGTH)
        if config.group == DEFAULT_CONSUMER_GROUP:
            raise ConfigError(
                f"group={config.group!r} is every Java client's default: give it a name of its own"
            )
        self.config = config
        self.consume_type = consume_type
        self.is_broadcasting = config.is_broadcasting
        self.is_orderly = is_orderly and not config.is_broadcasting
        self.group = with_namespace(config.group, config.namespace)
        self.client = ClientCore(with_stable_name(config), clock=clock)
        self.strategy = LiveStrategy(strategy, self.client, self.group)
        self.names = TopicNames(self.group, config.namespace)
        self.subscriptions = Subscriptions(self.client)
        self.membership = Membership(self.client, self.group)
        self.offsets = self._make_store()
        locks = QueueLocks(self.client, self.group) if self.is_orderly else None
        self.held = HeldQueues(clock, self.offsets, locks)
        self.rates = ConsumeRates(clock.monotonic())
        self.started_ms = 0
        self.longest_call: Callable[[], float] = float  # push consumers set their own

    @property
    def client_id(self) -> str:
        """The name by which brokers know this member: ``ip@instance``."""
        return self.client.client_id

    @property
    def identity(self) -> Identity:
        """The names of this member for telemetry."""
        return Identity(self.config.group, self.client.client_id, self.config.namespace)

    @property
    def data(self) -> ConsumerData:
        """The data that heartbeats send about this member."""
        return ConsumerData(
            group_name=self.group,
            consume_type=self.consume_type,
            message_model=self.config.message_model,
            consume_from_where=self.config.consume_from,
            subscription_data_set=tuple(self.subscriptions.values()),
        )

    def held_queues(self) -> list[MessageQueue]:
        """Return the queues held now, sorted, with plain names. Safe on any thread."""
        return sorted(map(self.names.plain_queue, self.held.queues()))

    def note_pulled(self, topic: str, *, count: int, seconds: float, pulls: int = 1) -> None:
        """Count fetched messages, for statistics; ``seconds``: that the pulls took together."""
        plain = self.names.plain_topic(topic)
        self.rates.pulled(plain, self.client.clock.monotonic(), count=count, seconds=seconds, pulls=pulls)

    def note_passed_over(self, topic: str) -> int:
        """Count a message whose head is broken; how many there were."""
        self.rates.pass_over(self.names.plain_topic(topic), self.client.clock.monotonic())
        return self.rates.passed_over

    def _make_store(self) -> OffsetStore:
        if not self.is_broadcasting:
            return RemoteBrokerOffsetStore(self.client, self.group)
        given = self.config.offset_store_path
        return LocalFileOffsetStore(Path(given) if given else default_path(self.client_id, self.group))
