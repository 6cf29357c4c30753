"""A push consumer: fetches held queues in the background and calls listeners with the messages.

Source of the rules: DefaultMQPushConsumerImpl (Java client).
"""

import asyncio
from functools import partial

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.consumer.acknowledge import Acknowledger
from rmqtools.engine.consumer.consume_concurrently import ConcurrentConsumption
from rmqtools.engine.consumer.consume_orderly import OrderlyConsumption
from rmqtools.engine.consumer.consume_pop import PopConsumption
from rmqtools.engine.consumer.fetch_policy import PushFetch
from rmqtools.engine.consumer.lifecycle import Lifecycle
from rmqtools.engine.consumer.listeners import Listener, Listeners, MessageQueueListener, tell_queues
from rmqtools.engine.consumer.operator_requests import OperatorRequests, consume_directly
from rmqtools.engine.consumer.pop import Popper
from rmqtools.engine.consumer.puller import Puller
from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.consumer.start_offsets import StartOffsets
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.ownership import Ownership
from rmqtools.engine.group.pop_assignment import BrokerRebalance, check_brokers_know
from rmqtools.engine.group.rebalance import Rebalance
from rmqtools.errors import ConfigError
from rmqtools.model.consume import ConsumeContext
from rmqtools.model.group import ConsumeType
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_RETRY_TOPIC
from rmqtools.model.names import dlq_topic, retry_topic
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import ConsumeMessageDirectlyResult
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.assignment import is_client_rebalance
from rmqtools.policy.endpoint.features import BROKER_SHARES
from rmqtools.policy.reconsume import max_reconsume_times


class PushCore:
    """The coroutines behind :class:`rmqtools.aio.PushConsumer`, which documents them."""

    def __init__(
        self,
        config: PushConsumerConfig,
        strategy: AllocateMessageQueueStrategy,
        *,
        message_queue_listener: MessageQueueListener | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._config = config
        self.member = member = Member(
            config, strategy, ConsumeType.CONSUME_PASSIVELY, is_orderly=config.orderly, clock=clock
        )
        self.client = member.client
        self.listeners = Listeners(
            clock,
            member.rates,
            group=member.group,
            orderly=config.orderly,
            observer=member.client.observer,
            identity=member.identity,
        )
        send_back = SendBack(
            self.client, member.group, max_reconsume_times=max_reconsume_times(config.max_reconsume_times)
        )
        kind = OrderlyConsumption if config.orderly else ConcurrentConsumption
        self.consumption = kind(member, config, self.listeners, send_back)
        self.fetching = PushFetch(member, config, self.consumption)
        self._puller = Puller(member, self.fetching)
        self._make_popper(send_back)
        self.ownership = Ownership(
            member,
            start_offset=StartOffsets(member, QueueAdmin(self.client)).find,
            tell_queues=message_queue_listener and partial(tell_queues, message_queue_listener),
            kind=(kind_of_rebalance := _kind_of_rebalance(config, strategy)),
            needs=[BROKER_SHARES] if kind_of_rebalance is BrokerRebalance else [],
        )
        member.held.on_hold(self._puller.start)
        member.held.on_hold(self.consumption.work_on)
        member.held.on_hold_popped(self._popper.start)
        self._life = Lifecycle(
            member,
            self._join,
            self.ownership.stop,
            self._puller.close,
            self._popper.close,
            self._end_listeners,
            member.held.close,
            member.membership.leave,
        )

    async def start(self) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.start`."""
        if not self.member.subscriptions:
            raise ConfigError(
                f"group {self._config.group!r} subscribes to nothing: call subscribe before start"
            )
        if not self.member.is_broadcasting:
            self.member.subscriptions.want_all(retry_topic(self.member.group))
        await self._life.start()

    async def close(self) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.close`."""
        self.listeners.closes(asyncio.current_task())
        await self._life.close()

    def listen(self, topic: str, listener: Listener, *, tags: str = "*", sql: str | None = None) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.subscribe`."""
        self.listeners.register(topic, listener)
        self.member.subscriptions.want(topic, tags=tags, sql=sql)

    def unsubscribe(self, topic: str) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.unsubscribe`."""
        self.member.subscriptions.want_no_more(self.member.names.wire_topic(topic))

    def suspend(self) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.suspend`."""
        self.fetching.is_suspended = True

    def resume(self) -> None:
        """See :meth:`rmqtools.aio.PushConsumer.resume`."""
        self.fetching.is_suspended = False
        self.member.held.wake()

    async def consume_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult | None:
        """Give a message to its listener on an administrator's request; None: there is no listener."""
        if message.topic == dlq_topic(self.member.group):
            message = message.with_topic(message.properties.get(PROPERTY_RETRY_TOPIC, message.topic))
        plain = self.member.names.plain_message(message)
        if not self.listeners.has(plain.topic):
            return None
        queue = MessageQueue(plain.topic, message.broker_name, message.queue_id)
        context = ConsumeContext(queue, is_orderly=self._config.orderly)
        return await consume_directly(
            self.listeners, plain, context, orderly=self._config.orderly, clock=self.client.clock
        )

    def _make_popper(self, send_back: SendBack) -> None:
        """Create the parts that consume popped queues (5.x)."""
        config, acknowledger = self._config, Acknowledger(self.client, self.member.group)
        self._pop_consumption = PopConsumption(
            config,
            self.listeners,
            acknowledger=acknowledger,
            send_back=send_back,
            clock=self.client.clock,
        )
        self._popper = Popper(
            self.member,
            config,
            policy=self.fetching,
            acknowledger=acknowledger,
            consumption=self._pop_consumption,
        )

    async def _join(self) -> None:
        OperatorRequests(self.member, self.consume_directly).listen()
        await self.ownership.join()
        self.client.background.spawn_loop("watch_timeouts", self.consumption.watch_timeouts_forever)

    async def _end_listeners(self) -> None:
        timeout = self._config.close_timeout
        await asyncio.gather(self.consumption.close(timeout), self._pop_consumption.close(timeout))


def _kind_of_rebalance(config: PushConsumerConfig, strategy: AllocateMessageQueueStrategy) -> type[Rebalance]:
    if is_client_rebalance(
        configured=config.client_rebalance, orderly=config.orderly, broadcasting=config.is_broadcasting
    ):
        return Rebalance
    check_brokers_know(strategy.name)
    return BrokerRebalance
