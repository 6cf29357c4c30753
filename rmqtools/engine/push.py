"""A push consumer: held queues are fetched in the background, listeners get what comes.

Source of the rules: DefaultMQPushConsumerImpl (Java client).
"""

import asyncio

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config_consumer import PushConsumerConfig
from rmqtools.engine.acknowledge import Acknowledger
from rmqtools.engine.consume_concurrently import ConcurrentConsumption
from rmqtools.engine.consume_directly import consume_directly
from rmqtools.engine.consume_orderly import OrderlyConsumption
from rmqtools.engine.consume_pop import PopConsumption
from rmqtools.engine.consumer import ConsumerCore
from rmqtools.engine.listeners import Listener, Listeners, MessageQueueListener
from rmqtools.engine.pop import Popper
from rmqtools.engine.pop_assignment import BrokerRebalance, check_brokers_know
from rmqtools.engine.pop_process_queue import PopProcessQueue
from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.engine.rebalance import Rebalance
from rmqtools.engine.send_back import SendBack
from rmqtools.errors import ConfigError
from rmqtools.model.consume import ConsumeContext
from rmqtools.model.group import ConsumeType
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_RETRY_TOPIC
from rmqtools.model.names import dlq_topic, without_this_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import PullResult
from rmqtools.model.running_info import ConsumeMessageDirectlyResult
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.assignment import AssignmentPlan, is_client_rebalance
from rmqtools.policy.flow import PullThresholds, exceeded_threshold
from rmqtools.policy.reconsume import max_reconsume_times


class PushCore(ConsumerCore):
    """The coroutines behind :class:`rmqtools.aio.PushConsumer`, where they are described."""

    consume_type = ConsumeType.CONSUME_PASSIVELY

    def __init__(
        self,
        config: PushConsumerConfig,
        strategy: AllocateMessageQueueStrategy,
        *,
        message_queue_listener: MessageQueueListener | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.push_config = config
        super().__init__(
            config,
            strategy,
            message_queue_listener=message_queue_listener,
            is_orderly=config.orderly,
            clock=clock,
        )
        self._limits = PullThresholds(
            max_count=config.pull_threshold_for_queue,
            max_size_bytes=config.pull_threshold_bytes_for_queue,
            max_span=None if config.orderly else config.consume_concurrently_max_span,
        )
        self.is_suspended = False
        self.listeners = Listeners(self.client.clock, self.rates, orderly=config.orderly)
        max_times = max_reconsume_times(config.max_reconsume_times)
        self.send_back = SendBack(self.client, self.group, max_reconsume_times=max_times)
        kind = OrderlyConsumption if config.orderly else ConcurrentConsumption
        self.consumption = kind(self, config, self.listeners, self.send_back)
        acknowledger = Acknowledger(self.client, self.group)
        self._retry_topics: dict[str, str] = {}  # those of topics that were popped before, by topic
        self._popper = Popper(self, acknowledger)
        self._pop_consumption = PopConsumption(
            config, self.listeners, acknowledger=acknowledger, send_back=self.send_back, clock=clock
        )

    async def start(self) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.start`."""
        if not self.subscriptions:
            raise ConfigError(
                f"group {self.config.group!r} subscribes to nothing: call subscribe before start"
            )
        if not self.is_broadcasting:
            self.subscribe_retry_topic()
        await super().start()
        self.client.spawn("watch_timeouts", self.consumption.watch_timeouts_forever())

    def listen(self, topic: str, listener: Listener, *, tags: str = "*", sql: str | None = None) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.subscribe`."""
        self.listeners.register(topic, listener)
        self.subscribe(topic, tags=tags, sql=sql)

    def suspend(self) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.suspend`."""
        self.is_suspended = True

    def resume(self) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.resume`."""
        self.is_suspended = False
        for held in self.table.values():
            held.wake()
        for popped in self.pop_table.values():
            popped.wake()

    def may_pull(self, held: ProcessQueue, *, coming: PullResult | None = None) -> bool:
        """See :class:`PullOwner`. A topic just unsubscribed has no tags any more: all would come."""
        if not self.is_subscribed(held.queue.topic):
            return False
        if self.is_suspended or (self.is_orderly and not held.is_locked):
            return False
        return exceeded_threshold(held.cached(coming), self._thresholds()) is None

    def take(self, held: ProcessQueue, messages: list[MessageExt]) -> None:
        """See :class:`PullOwner`."""
        self.consumption.take(held, messages)

    def work_on(self, held: ProcessQueue) -> None:
        """See :class:`QueueHolder`."""
        super().work_on(held)
        self.consumption.work_on(held)

    async def stop_consuming(self) -> None:
        """See :class:`ConsumerCore`."""
        await self._popper.close()
        for popped in self.pop_table.values():
            popped.drop()
        timeout = self.push_config.close_timeout
        await asyncio.gather(self.consumption.close(timeout), self._pop_consumption.close(timeout))

    def plain_message(self, message: MessageExt) -> MessageExt:
        """See :class:`ConsumerCore`; also for what is left of the time when a topic was popped."""
        topic = self._retry_topics.get(message.topic, message.topic)
        return super().plain_message(message if topic == message.topic else message.with_topic(topic))

    async def consume_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult | None:
        """See :class:`OperatedConsumer`."""
        if message.topic == dlq_topic(self.group):
            message = message.with_topic(message.properties.get(PROPERTY_RETRY_TOPIC, message.topic))
        plain = self.plain_message(message)
        if not self.listeners.has(plain.topic):
            return None
        context = ConsumeContext(MessageQueue(plain.topic, message.broker_name, message.queue_id))
        return await consume_directly(
            self.listeners, plain, context, orderly=self.push_config.orderly, clock=self.client.clock
        )

    # brokers 5.x that share queues out

    def work_on_pop(self, held: PopProcessQueue) -> None:
        """See :class:`PopHolder`."""
        self._popper.start(held)

    def take_popped(self, held: PopProcessQueue, messages: list[MessageExt]) -> None:
        """See :class:`PopOwner`."""
        self._pop_consumption.take(held, messages)

    def switch_retry_topic(self, topic: str, plan: AssignmentPlan) -> None:
        """See :class:`PopHolder`."""
        if plan.subscribe is not None and plan.subscribe not in self.subscriptions:
            self._retry_topics[plan.subscribe] = without_this_namespace(topic, self.config.namespace)
            self.subscriptions.want_all(plan.subscribe)
            self._tell_subscriptions()
        if plan.unsubscribe is not None and self.subscriptions.pop(plan.unsubscribe, None) is not None:
            self._tell_subscriptions()

    def _make_rebalance(self) -> Rebalance:
        config = self.push_config
        if is_client_rebalance(
            configured=config.client_rebalance, orderly=config.orderly, broadcasting=config.is_broadcasting
        ):
            return super()._make_rebalance()
        check_brokers_know(self.strategy.name)
        return BrokerRebalance(self)

    def _thresholds(self) -> PullThresholds:
        config = self.push_config
        if config.pull_threshold_for_topic is None and config.pull_threshold_bytes_for_topic is None:
            return self._limits
        return self._limits.shared(
            len(self.table),
            topic_count=config.pull_threshold_for_topic,
            topic_size_bytes=config.pull_threshold_bytes_for_topic,
        )
