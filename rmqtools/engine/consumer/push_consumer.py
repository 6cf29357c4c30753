"""A push consumer: fetches held queues in the background and calls listeners with the messages.

Source of the rules: DefaultMQPushConsumerImpl (Java client).
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Self

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config.client import check_config
from rmqtools.config.consumer import PushConsumerConfig
from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.blocking_form import INTERRUPT_NOTE, START_NOTE, blocking
from rmqtools.engine.connection.connected import Connected
from rmqtools.engine.connection.refusals import ErrorListener
from rmqtools.engine.consumer.acknowledge import Acknowledger
from rmqtools.engine.consumer.consume_concurrently import ConcurrentConsumption
from rmqtools.engine.consumer.consume_orderly import OrderlyConsumption
from rmqtools.engine.consumer.consume_pop import PopConsumption
from rmqtools.engine.consumer.fetch_policy import PushFetch
from rmqtools.engine.consumer.lifecycle import Lifecycle
from rmqtools.engine.consumer.listeners import Listeners, MessageQueueListener, report_queues
from rmqtools.engine.consumer.operator_requests import OperatorRequests, consume_directly
from rmqtools.engine.consumer.pop import Popper
from rmqtools.engine.consumer.puller import Puller
from rmqtools.engine.consumer.send_back import SendBack
from rmqtools.engine.consumer.start_offsets import StartOffsets
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.ownership import Ownership
from rmqtools.engine.group.pop_assignment import BrokerRebalance, check_brokers_know
from rmqtools.engine.group.rebalance import Rebalance
from rmqtools.engine.user_functions import check_error_listener, check_listener, check_queue_listener
from rmqtools.errors import ConfigError
from rmqtools.lazy_names import LazyModule
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.group import ConsumeType
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_RETRY_TOPIC
from rmqtools.model.names import dlq_topic, retry_topic
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import ConsumeMessageDirectlyResult
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.allocate.strategy_table import StrategyName, strategy_named
from rmqtools.policy.assignment import is_client_rebalance
from rmqtools.policy.endpoint.features import BROKER_SHARES
from rmqtools.policy.redelivery import max_reconsume_times

if TYPE_CHECKING:
    from rmqtools.engine.consumer import trace
else:
    trace = LazyModule("rmqtools.engine.consumer.trace")  # it needs the parts that send messages

MessageListener = Callable[
    [list[MessageExt], ConsumeContext],
    Awaitable[ConsumeConcurrentlyStatus | ConsumeOrderlyStatus | None],
]


class PushConsumer(Connected):
    """A member of a consumer group that calls listeners with its messages.

    Members share the queues of their topics by ``strategy``, which must be the same for all members, and
    rebalance whenever a member joins or leaves. Every message is delivered at least once.
    """

    __module__ = "rmqtools.aio"
    close_ends_start = True

    @blocking("base")
    def __init__(
        self,
        config: PushConsumerConfig,
        *,
        strategy: AllocateMessageQueueStrategy | StrategyName | None = None,
        message_queue_listener: MessageQueueListener | None = None,
        error_listener: ErrorListener | None = None,
    ) -> None:
        """Make a consumer; nothing is sent before it is started.

        Args:
            config: group and settings.
            strategy: how members share the queues, or the name of a built-in strategy that needs no options
                (``"AVG_BY_CIRCLE"``); None: AVG.
            message_queue_listener: called as ``(topic, all_queues, own_queues)`` on the loop when this
                member's queues of a topic have changed; must not block.
            error_listener: called with an error on the loop when a broker begins to refuse this member for
                lack of permission; must not block. If every broker refuses, the start raises.

        Raises:
            ConfigError, MessageRejectedError: a setting or the group name is not valid.
        """
        check_queue_listener(message_queue_listener)
        check_error_listener(error_listener)
        self._assemble(config, strategy_named(strategy), message_queue_listener, SYSTEM_CLOCK)
        if error_listener is not None:
            self._client.refusals.listen(error_listener)

    @classmethod
    def _with_clock(cls, config: PushConsumerConfig, clock: Clock) -> Self:
        """Make a consumer that runs by another clock."""
        consumer = cls.__new__(cls)
        consumer._assemble(config, strategy_named(None), None, clock)
        return consumer

    def _assemble(
        self,
        config: PushConsumerConfig,
        strategy: AllocateMessageQueueStrategy,
        message_queue_listener: MessageQueueListener | None,
        clock: Clock,
    ) -> None:
        """Make the parts and connect them."""
        check_config(type(self).__name__, config, PushConsumerConfig)
        self._config = config
        self._member = member = Member(
            config, strategy, ConsumeType.CONSUME_PASSIVELY, is_orderly=config.orderly, clock=clock
        )
        self._client = member.client
        self._make_listeners(clock)
        send_back = SendBack(
            self._client, member.group, max_reconsume_times=max_reconsume_times(config.max_reconsume_times)
        )
        kind = OrderlyConsumption if config.orderly else ConcurrentConsumption
        self._consumption = kind(member, config, self._listeners, send_back)
        self._fetching = PushFetch(member, config, self._consumption)
        self._puller = Puller(member, self._fetching)
        self._make_popper(send_back)
        self._ownership = Ownership(
            member,
            start_offset=StartOffsets(member, QueueAdmin(self._client)).find,
            report_queues=message_queue_listener and partial(report_queues, message_queue_listener),
            kind=(kind_of_rebalance := _kind_of_rebalance(config, strategy)),
            needs=[BROKER_SHARES] if kind_of_rebalance is BrokerRebalance else [],
        )
        member.held.on_hold(self._puller.start)
        member.held.on_hold(self._consumption.work_on)
        member.held.on_hold_popped(self._popper.start)
        self._life = Lifecycle(
            self._client,
            self._join,
            self._ownership.stop,
            self._puller.close,
            self._popper.close,
            self._end_listeners,
            self._flush_traces,
            member.held.close,
            member.membership.leave,
            settle=self._ownership.settle,
        )

    @property
    def client_id(self) -> str:
        """The name of this member at brokers: ``ip@instance``."""
        return self._client.client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues this member holds now, sorted; those of the retry topic too."""
        return self._member.held_queues()

    @blocking("base", note=START_NOTE)
    async def start(self) -> None:
        """Join the group. Returns when this member holds its share, after the first rebalance, or after 10 s.

        A message that is sent after that is not missed, wherever the group begins: its place in each queue is
        known and stored. Java's start returns before, and such messages may be skipped. There is no setting:
        the wait takes a few requests, and a broker that does not answer makes it no longer than 10 s.
        Listeners may be called before this returns.

        Raises:
            ConfigError: nothing is subscribed.
            UnsupportedError: a proxy, or a broker too old, for shares of brokers, pins or conditions.
            BrokerError: a broker refuses an SQL92 condition.
            RemotingError: no name server answers.
        """
        if not self._member.subscriptions:
            raise ConfigError(
                f"group {self._config.group!r} subscribes to nothing: call subscribe before start"
            )
        if not self._member.is_broadcasting:
            self._member.subscriptions.want_all(retry_topic(self._member.group))
        await self._life.start()

    @blocking("base", note="It does not wait for a listener that calls it. " + INTERRUPT_NOTE)
    async def close(self) -> None:
        """Leave the group. May be called at any time, in any state, also after an interrupted close.

        Running listeners have ``close_timeout`` seconds to return; the offsets they complete are stored.
        """
        self._listeners.closes(asyncio.current_task())
        await self._life.close()

    @blocking("base")
    def subscribe(
        self, topic: str, listener: MessageListener, *, tags: str = "*", sql: str | None = None
    ) -> None:
        """Call ``listener(messages, context)`` for a topic's messages; before or after the start.

        Args:
            topic: one topic; each has its own listener.
            listener: a coroutine function. It gets 1 to ``consume_message_batch_max_size`` messages of one
                queue. If it returns None or CONSUME_SUCCESS (``orderly``: SUCCESS), they are acknowledged. If
                it raises, or returns RECONSUME_LATER (``orderly``: SUSPEND_CURRENT_QUEUE_A_MOMENT), they are
                delivered again.
            tags: the tags wanted, ``"a || b"``; ``*`` is everything.
            sql: a condition on properties (SQL92) instead of tags; needs ``enablePropertyFilter`` on brokers.
                Topics with the queue type BatchCQ are refused at the start: brokers evaluate a condition for
                a stored batch as a whole.

        Raises:
            TypeError: ``listener`` cannot be called with messages and context, or is of the other kind:
                blocking consumers take plain functions, those of ``rmqtools.aio`` coroutine functions.
            ConfigError, MessageRejectedError: a name or an expression that cannot be used.
        """
        check_listener(topic, listener, awaited=True)
        self._member.subscriptions.want(topic, tags=tags, sql=sql)
        self._listeners.register(topic, listener)

    @blocking("call")
    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic. Its queues are released soon, as those that go to another member.

        Messages that were fetched and are not consumed by then are not acknowledged: the group gets them when
        a member subscribes again. The listener still gets the retries of messages that failed.
        """
        self._member.subscriptions.want_no_more(self._member.names.wire_topic(topic))

    @blocking("call")
    def suspend(self) -> None:
        """Stop fetching until :meth:`resume`. Messages fetched already are still delivered."""
        self._fetching.is_suspended = True

    @blocking("call")
    def resume(self) -> None:
        """End a :meth:`suspend`: fetch again."""
        self._fetching.is_suspended = False
        self._member.held.wake()

    async def _consume_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult | None:
        """Give a message to its listener on an administrator's request; None: there is no listener."""
        if message.topic == dlq_topic(self._member.group):
            message = message.with_topic(message.properties.get(PROPERTY_RETRY_TOPIC, message.topic))
        plain = self._member.names.plain_message(message)
        if not self._listeners.has(plain.topic):
            return None
        queue = MessageQueue(plain.topic, message.broker_name, message.queue_id)
        context = ConsumeContext(queue, is_orderly=self._config.orderly)
        return await consume_directly(
            self._listeners, plain, context, orderly=self._config.orderly, clock=self._client.clock
        )

    def _make_listeners(self, clock: Clock) -> None:
        """Create the part that calls listeners, and the traces of its calls."""
        member, config = self._member, self._config
        self._traces = trace.ConsumeTraces(member.client, config) if config.enable_trace else None
        self._listeners = Listeners(
            clock,
            member.rates,
            group=member.group,
            orderly=config.orderly,
            observer=member.client.observer,
            identity=member.identity,
            traces=self._traces,
        )

    def _make_popper(self, send_back: SendBack) -> None:
        """Create the parts that consume popped queues (5.x)."""
        config, acknowledger = self._config, Acknowledger(self._client, self._member.group)
        self._pop_consumption = PopConsumption(
            config,
            self._listeners,
            acknowledger=acknowledger,
            send_back=send_back,
            client=self._client,
        )
        self._popper = Popper(
            self._member,
            config,
            policy=self._fetching,
            acknowledger=acknowledger,
            consumption=self._pop_consumption,
        )

    async def _join(self) -> None:
        OperatorRequests(self._member, self._consume_directly).listen()
        await self._ownership.join()
        self._client.background.spawn_loop("watch_timeouts", self._consumption.watch_timeouts_forever)
        if self._traces is not None:
            self._client.background.spawn_loop("trace", self._traces.dispatcher.run)

    async def _end_listeners(self) -> None:
        timeout = self._config.close_timeout
        await asyncio.gather(self._consumption.close(timeout), self._pop_consumption.close(timeout))

    async def _flush_traces(self) -> None:
        if self._traces is not None:
            await self._traces.dispatcher.close()


def _kind_of_rebalance(config: PushConsumerConfig, strategy: AllocateMessageQueueStrategy) -> type[Rebalance]:
    if is_client_rebalance(
        configured=config.client_rebalance, orderly=config.orderly, broadcasting=config.is_broadcasting
    ):
        return Rebalance
    check_brokers_know(strategy.name)
    return BrokerRebalance
