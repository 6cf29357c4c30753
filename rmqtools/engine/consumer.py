"""What push and pull consumers have in common: membership, subscriptions, offsets, held queues, fetching.

Source of the rules: DefaultMQPushConsumerImpl, DefaultLitePullConsumerImpl, RebalancePushImpl (Java client).
Topics, groups and queues have wire names in here, namespace included, as all members of a group must see the
same.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config_consumer import ConsumerConfig
from rmqtools.engine.admin import AdminCore
from rmqtools.engine.client import ClientCore
from rmqtools.engine.listeners import MessageQueueListener, tell_queues
from rmqtools.engine.local_offset_store import LocalFileOffsetStore, default_path, with_stable_name
from rmqtools.engine.membership import Membership
from rmqtools.engine.offset_store import OffsetStore, RemoteBrokerOffsetStore
from rmqtools.engine.operator_requests import OperatorRequests
from rmqtools.engine.pop_process_queue import PopProcessQueue
from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.engine.pull import Puller
from rmqtools.engine.queue_lock import LOCK_INTERVAL, QueueLocks
from rmqtools.engine.rebalance import TRY_AGAIN_DELAY, Rebalance
from rmqtools.engine.repeat import repeat_forever
from rmqtools.engine.rounds import LiveStrategy, Rounds
from rmqtools.engine.subscriptions import Subscriptions
from rmqtools.errors import ConfigError, PermissionDeniedError, TopicNotFoundError
from rmqtools.log import get_logger
from rmqtools.model.group import ConsumerData, ConsumeType, SubscriptionData
from rmqtools.model.message import MessageExt
from rmqtools.model.names import (
    DEFAULT_CONSUMER_GROUP,
    RETRY_GROUP_TOPIC_PREFIX,
    retry_topic,
    with_namespace,
    without_this_namespace,
)
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import PullResult
from rmqtools.model.running_info import ConsumeMessageDirectlyResult
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.consume_rates import ConsumeRates
from rmqtools.policy.reconsume import original_topic
from rmqtools.policy.start_offset import StartAt, checked_offset, start_offset
from rmqtools.policy.validate import MAX_GROUP_LENGTH, check_name

log = get_logger(__name__)

_RELEASE_PATIENCE = 0.5  # seconds a queue in order is waited for; upstream tryRemoveOrderMessageQueue
_HALF_AN_HOUR_MS = 30 * 60 * 1000


class ConsumerCore(ABC):
    """A member of a consumer group."""

    consume_type: ClassVar[ConsumeType]

    def __init__(
        self,
        config: ConsumerConfig,
        strategy: AllocateMessageQueueStrategy,
        *,
        message_queue_listener: MessageQueueListener | None = None,
        is_orderly: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        check_name("consumer group", config.group, MAX_GROUP_LENGTH)
        if config.group == DEFAULT_CONSUMER_GROUP:
            raise ConfigError(
                f"group={config.group!r} is every Java client's default: give it a name of its own"
            )
        self.config = config
        self.is_broadcasting = config.is_broadcasting
        self.is_orderly = is_orderly and not config.is_broadcasting
        self.group = with_namespace(config.group, config.namespace)
        self.client = ClientCore(with_stable_name(config), clock=clock)
        self.offsets = self._make_store()
        self.subscriptions = Subscriptions(self.client)
        self.table: dict[MessageQueue, ProcessQueue] = {}
        self.pop_table: dict[MessageQueue, PopProcessQueue] = {}
        self.rates = ConsumeRates(clock.monotonic())
        self.started_ms = 0
        self.strategy = LiveStrategy(strategy, self.client, self.group)
        self.locks = QueueLocks(self.client, self.group)
        self.membership = Membership(self.client, self.group)
        self.rounds = Rounds(self._make_rebalance(), self.strategy, config)
        self._admin = AdminCore(self.client)
        self._puller = Puller(self)
        self._message_queue_listener = message_queue_listener

    # what the two kinds do differently

    @abstractmethod
    def may_pull(self, held: ProcessQueue, *, coming: PullResult | None = None) -> bool:
        """See :class:`PullOwner`."""

    @abstractmethod
    def take(self, held: ProcessQueue, messages: list[MessageExt]) -> None:
        """Handle messages that were just fetched."""

    @abstractmethod
    async def stop_consuming(self) -> None:
        """Hand out nothing more; what is handed out has its time to end."""

    async def consume_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult | None:
        """See :class:`OperatedConsumer`."""
        return None

    # life

    async def start(self) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.start`."""
        self.client.start()
        self.started_ms = self.client.clock.now_ms()
        try:
            await self.subscriptions.find_routes(self.subscribed_topics())
            OperatorRequests(self).listen()
            await self.membership.join(self.consumer_data(), self.rounds.request)
        except BaseException:
            await self.client.close()
            raise
        self.client.routes.on_change(self._route_changed)
        self.client.spawn("rebalance", self.rounds.run_forever())
        self.client.spawn(
            "look_for_routes", self.subscriptions.look_for_routes_forever(self.subscribed_topics)
        )
        self.client.spawn("persist_offsets", self._persist_forever())
        if self.strategy.wants_pins:
            self.client.spawn("watch_pins", self.rounds.watch_pins_forever())
        if self.is_orderly:
            self.client.spawn("renew_locks", self._renew_locks_forever())

    async def close(self) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.close`."""
        if self.client.is_open:
            self.rounds.close()
            await self.client.stop_tasks()
            await self._puller.close()
            await self.stop_consuming()
            await self.offsets.persist(self.owed_queues(), again=True)
            if self.is_orderly:
                await self.locks.unlock(self.table)
            for held in self.table.values():
                held.drop()
            await self.membership.leave()
        await self.client.close()

    # subscriptions

    def subscribe(self, topic: str, *, tags: str = "*", sql: str | None = None) -> str:
        """Want messages of a topic; its wire name.

        Raises:
            MessageRejectedError, ConfigError: a name or an expression that brokers refuse.
        """
        wire_topic = self.subscriptions.want(topic, tags=tags, sql=sql)
        self._tell_subscriptions()
        return wire_topic

    def unsubscribe(self, topic: str) -> None:
        """Want no more messages of a topic; its queues are given up in the next round."""
        self.subscriptions.pop(self.client.wire_topic(topic), None)
        self._tell_subscriptions()

    def subscribe_retry_topic(self) -> None:
        """Want the group's failed messages."""
        self.subscriptions.want_all(retry_topic(self.group))
        self._tell_subscriptions()

    def subscription_of(self, topic: str) -> SubscriptionData:
        """See :class:`PullOwner`; everything, for queues that were assigned without a subscription."""
        return self.subscriptions.get(topic) or SubscriptionData(topic=topic)

    def is_subscribed(self, topic: str) -> bool:
        """Whether messages of a wire topic are wanted; its queues are held until the next round if not."""
        return topic in self.subscriptions

    def consumer_data(self) -> ConsumerData:
        """What heartbeats say of this member."""
        return ConsumerData(
            group_name=self.group,
            consume_type=self.consume_type,
            message_model=self.config.message_model,
            consume_from_where=self.config.consume_from,
            subscription_data_set=tuple(self.subscriptions.values()),
        )

    def owed_queues(self) -> Collection[MessageQueue]:
        """The queues whose offsets closing has to store."""
        return list(self.table)

    def held_queues(self) -> list[MessageQueue]:
        """The queues held now, sorted, as their user knows them."""
        tables = (list(self.table.items()), list(self.pop_table.items()))  # other threads ask, too
        held = {queue for table in tables for queue, held in table if not held.is_dropped}
        return sorted(map(self.plain_queue, held))

    def plain_queue(self, queue: MessageQueue) -> MessageQueue:
        """A queue as its user knows it, without the namespace."""
        return queue.without_namespace(self.config.namespace)

    def wire_queue(self, queue: MessageQueue) -> MessageQueue:
        """A queue as brokers know it."""
        return replace(queue, topic=self.client.wire_topic(queue.topic)) if self.config.namespace else queue

    def plain_message(self, message: MessageExt) -> MessageExt:
        """A message with the topic its user knows, also where it comes from the group's retry topic."""
        topic = without_this_namespace(original_topic(message, self.group), self.config.namespace)
        return message if topic == message.topic else message.with_topic(topic)

    # PullOwner: what fetching asks for

    def offset_for_pull(self, queue: MessageQueue) -> int | None:
        """See :class:`PullOwner`."""
        return self.offsets.offset_for_pull(queue)

    def passed_over(self, held: ProcessQueue) -> None:
        """See :class:`PullOwner`."""
        self.offsets.update(held.queue, held.next_offset, increase_only=True)

    # QueueHolder: what rounds ask for

    def subscribed_topics(self) -> Iterable[str]:
        """See :class:`QueueHolder`."""
        return tuple(self.subscriptions)

    async def find_queues(self, topic: str) -> Collection[MessageQueue] | None:
        """See :class:`QueueHolder`."""
        try:
            return await self.client.routes.subscribe_queues(topic)
        except TopicNotFoundError:
            return None
        except PermissionDeniedError:
            return ()

    async def find_members(self, topic: str) -> Collection[str] | None:
        """See :class:`QueueHolder`."""
        return await self.membership.find_members(topic)

    async def release(self, held: ProcessQueue) -> bool:
        """See :class:`QueueHolder`. A queue in order is kept until its listener has ended."""
        if self.is_orderly:
            try:
                async with asyncio.timeout(_RELEASE_PATIENCE):
                    await held.consuming.acquire()
            except TimeoutError:
                self.rebalance_later(TRY_AGAIN_DELAY)
                return False
            held.consuming.release()
        await self.offsets.persist([held.queue])
        self.offsets.remove(held.queue)
        if self.is_orderly:
            await self.locks.unlock([held.queue])
        return True

    async def lock(self, queues: Collection[MessageQueue]) -> Collection[MessageQueue]:
        """See :class:`QueueHolder`."""
        return [queue for queue, granted in (await self.locks.lock(queues)).items() if granted]

    def forget_offset(self, queue: MessageQueue) -> None:
        """See :class:`QueueHolder`."""
        self.offsets.remove(queue)

    async def start_offset(self, queue: MessageQueue) -> int:
        """See :class:`QueueHolder`."""
        committed = await self.read_committed(queue)
        start = start_offset(committed, self.config.consume_from, queue.topic)
        if start is StartAt.MAX_OFFSET:
            return checked_offset(await self._admin.max_offset(queue))
        if start is StartAt.SEARCH_TIMESTAMP:
            return checked_offset(await self._admin.search_offset(queue, self._consume_timestamp_ms()))
        assert isinstance(start, int)
        return start

    async def read_committed(self, queue: MessageQueue) -> int | None:
        """The group's offset of a queue that is to be held; None: it has none."""
        return await self.offsets.read_store(queue)

    def begin(self, queue: MessageQueue, offset: int) -> ProcessQueue:
        """See :class:`QueueHolder`."""
        return ProcessQueue(queue, self.client.clock, offset)

    def work_on(self, held: ProcessQueue) -> None:
        """See :class:`QueueHolder`."""
        self._puller.start(held)

    def queues_changed(
        self, topic: str, all_queues: Collection[MessageQueue], mine: Collection[MessageQueue]
    ) -> None:
        """See :class:`QueueHolder`."""
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return
        log.info("queues_changed", group=self.group, topic=topic, held=len(mine), all=len(all_queues))
        if self._message_queue_listener is None:
            return
        plain = [[self.plain_queue(queue) for queue in sorted(given)] for given in (all_queues, mine)]
        tell_queues(
            self._message_queue_listener,
            without_this_namespace(topic, self.config.namespace),
            plain[0],
            plain[1],
        )

    def rebalance_later(self, delay: float) -> None:
        """See :class:`QueueHolder`."""
        self.rounds.request_later(delay)

    # the rest

    def restart(self, held: ProcessQueue, offset: int) -> None:
        """See :class:`PullOwner`. What was fetched before is neither handed out nor committed any more."""
        held.drop()
        fresh = self.begin(held.queue, offset)
        fresh.take_over(held)
        self.offsets.update(held.queue, offset)
        self.table[held.queue] = fresh
        self.client.spawn("persist_restart", self.offsets.persist([held.queue]))
        self.work_on(fresh)

    def note_pulled(self, topic: str, *, count: int, seconds: float) -> None:
        """See :class:`PullOwner`."""
        plain = without_this_namespace(topic, self.config.namespace)
        self.rates.pulled(plain, self.client.clock.monotonic(), count=count, seconds=seconds)

    def _make_rebalance(self) -> Rebalance:
        return Rebalance(self, group=self.group, client_id=self.client.client_id, table=self.table)

    def _make_store(self) -> OffsetStore:
        if not self.is_broadcasting:
            return RemoteBrokerOffsetStore(self.client, self.group)
        given = self.config.offset_store_path
        return LocalFileOffsetStore(Path(given) if given else default_path(self.client.client_id, self.group))

    def _tell_subscriptions(self) -> None:
        """While the consumer runs, a changed subscription goes to the brokers at once."""
        if self.client.is_open:
            self.membership.update(self.consumer_data())
            self.client.spawn("subscription_heartbeat", self._send_subscriptions())

    async def _send_subscriptions(self) -> None:
        await self.subscriptions.find_routes(self.subscribed_topics())
        await self.client.send_heartbeats()
        self.rounds.request()

    def _route_changed(self, topic: str) -> None:
        if topic in self.subscriptions:
            self.rounds.request()

    def _consume_timestamp_ms(self) -> int:
        given = self.config.consume_timestamp_ms
        return self.started_ms - _HALF_AN_HOUR_MS if given is None else given

    async def _persist_forever(self) -> None:
        interval = self.config.persist_consumer_offset_interval
        await repeat_forever(interval, lambda: self.offsets.persist(list(self.table)), what="persist_offsets")

    async def _renew_locks_forever(self) -> None:
        await repeat_forever(LOCK_INTERVAL, self.renew_locks, what="renew_locks")

    async def renew_locks(self) -> None:
        """Ask for the locks of all held queues once more."""
        for queue, granted in (await self.locks.lock(self.table)).items():
            if (held := self.table.get(queue)) is not None and not held.is_dropped:
                held.lock(granted)
