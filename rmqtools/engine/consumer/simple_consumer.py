"""A simple consumer: receives single messages, and settles each when its caller says so.

It has no queues: brokers choose the messages of each answer (POP_MESSAGE), and hide them from all members
until they are acknowledged or their invisible time ends.
Source of the rules: SimpleConsumer (gRPC client of RocketMQ 5), ConsumerProcessor (proxy 5.5.0).

- A simple consumer asks several places by NOTIFICATION, not by long polls at once: an answer that is not
  needed would hide its messages until their invisible time ends. For the same reason a cancelled ``receive``
  keeps messages that arrive later for the next one.
- A simple consumer pops with born time 0, which is the broker's own: with the client's, a broker whose clock
  is ahead by more than the poll would answer every pop at once and without messages.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config.client import check_config
from rmqtools.config.simple_consumer import SimpleConsumerConfig, check_invisible, check_receive
from rmqtools.engine.asynchronous import ItemsUntilNone
from rmqtools.engine.blocking_form import INTERRUPT_NOTE, START_NOTE, blocking
from rmqtools.engine.connection.background import MergedWork
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.connected import Connected
from rmqtools.engine.connection.remoting import forget_answer
from rmqtools.engine.consumer.lifecycle import Lifecycle
from rmqtools.engine.consumer.receipts import Receipts, received_messages
from rmqtools.engine.consumer.receive import Receiver
from rmqtools.engine.consumer.settle_requests import PoppedMessage, SentRequest, SettleRequests
from rmqtools.engine.group.membership import Membership
from rmqtools.engine.group.subscriptions import Subscriptions
from rmqtools.errors import (
    AcknowledgeError,
    ConnectionLostError,
    ReceiptError,
    RemotingConnectError,
    RemotingTimeoutError,
    RocketMQError,
)
from rmqtools.log import get_logger
from rmqtools.model.group import ConsumerData, ConsumeType
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_POP_CK
from rmqtools.model.names import with_namespace
from rmqtools.observer import Identity
from rmqtools.policy.endpoint.features import BATCH_ACKNOWLEDGEMENTS, SIMPLE_CONSUMING, SUSPENDED_TRIES
from rmqtools.policy.validate import MAX_GROUP_LENGTH, check_name
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.pop_extra_info import format_extra_info, renewed_extra_info
from rmqtools.protocol.headers.pull import ChangeInvisibleTimeResponseHeader

log = get_logger(__name__)

_Failed = tuple[MessageExt, RocketMQError]


class SimpleConsumer(Connected):
    """A member of a consumer group that receives, acknowledges and hides single messages.

    Like the SimpleConsumer of RocketMQ's gRPC clients, without a proxy; brokers 5.0 or newer. A received
    message is hidden from all members for ``invisible_duration``. If it is not acknowledged within this time,
    it comes again, with one more in ``reconsume_times``. Any number of tasks may call it at the same time.
    """

    __module__ = "rmqtools.aio"

    @blocking("base")
    def __init__(self, config: SimpleConsumerConfig) -> None:
        """Make a consumer; nothing is sent before it is started.

        Args:
            config: group and settings.

        Raises:
            ConfigError, MessageRejectedError: a setting or the group name is not valid.
        """
        self._assemble(config, SYSTEM_CLOCK)

    @classmethod
    def _with_clock(cls, config: SimpleConsumerConfig, clock: Clock) -> "SimpleConsumer":
        """Make a consumer that runs by another clock."""
        consumer = cls.__new__(cls)
        consumer._assemble(config, clock)
        return consumer

    def _assemble(self, config: SimpleConsumerConfig, clock: Clock) -> None:
        """Make the parts and connect them."""
        check_config(type(self).__name__, config, SimpleConsumerConfig)
        check_name("consumer group", config.group, MAX_GROUP_LENGTH)
        self._config = config
        self._group = with_namespace(config.group, config.namespace)
        self._client = ClientCore(config, clock=clock)
        self._subscriptions = Subscriptions(self._client)
        self._subscriptions.on_change(self._send_subscriptions_soon)
        self._membership = Membership(self._client, self._group)
        self._telling = MergedWork(
            self._client.background, "subscription_heartbeat", self._send_subscriptions
        )
        self._receipts = Receipts(clock)
        self._requests = SettleRequests(self._client, self._group)
        self._receiver = Receiver(
            self._client, config, self._subscriptions, group=self._group, receipts=self._receipts
        )
        self._receiving: set[asyncio.Task[list[MessageExt]]] = set()
        self._pops_left: dict[tuple[int, float], list[asyncio.Task[list[MessageExt]]]] = {}  # by arguments
        self._left: deque[MessageExt] = deque()  # received, and taken by no call
        self._has_left = asyncio.Event()
        self._offered: list[dict[int, list[MessageExt]]] = []  # to calling threads; empty: taken
        self._closing = False
        self._life = Lifecycle(
            self._client, self._join, self._client.stop_tasks, self._end_receiving, self._membership.leave
        )

    @property
    def client_id(self) -> str:
        """The name of this member at brokers: ``ip@instance``."""
        return self._client.client_id

    @blocking("base", note=START_NOTE)
    async def start(self) -> None:
        """Join the group.

        Raises:
            UnsupportedError: a proxy, or a broker older than 5.0.
            BrokerError: a broker refuses an SQL92 condition.
            RemotingError: no name server answers.
        """
        await self._life.start()

    @blocking("base", note=INTERRUPT_NOTE)
    async def close(self) -> None:
        """Leave the group. Running calls of :meth:`receive` return no messages.

        Messages that were not acknowledged come again after their invisible time. May be called at any time,
        in any state, also after an interrupted close.
        """
        self._closing = True
        await self._life.close()

    @blocking("call")
    def subscribe(self, topic: str, *, tags: str = "*", sql: str | None = None) -> None:
        """Receive a topic's messages from now on; before or after the start.

        Args:
            topic: one topic; call it again for more.
            tags: the tags wanted, ``"a || b"``; ``*`` is everything.
            sql: a condition on properties (SQL92) instead of tags; needs ``enablePropertyFilter`` on brokers.

        Raises:
            ConfigError, MessageRejectedError: a name or an expression is not valid.
        """
        self._subscriptions.want(topic, tags=tags, sql=sql)

    @blocking("call")
    def unsubscribe(self, topic: str) -> None:
        """Stop receiving a topic's messages."""
        self._subscriptions.want_no_more(self._client.wire_topic(topic))

    @blocking("base")
    async def receive(
        self,
        *,
        max_messages: int | None = None,
        invisible_duration: float | None = None,
        wait: float | None = None,
    ) -> list[MessageExt]:
        """Wait for messages; return 1 to ``max_messages`` of one topic and broker, or none after ``wait``.

        Messages that were tried more than ``max_reconsume_times`` times become dead letters, and are not
        returned. If the call is cancelled, the messages of its answer go to other calls.

        Args:
            max_messages: 1 to 32; None: the setting of this name, as for the other arguments.
            invisible_duration: seconds until a message that was not acknowledged comes again.
            wait: seconds until an empty list is returned; brokers may answer up to 5 s later. 0: ask each
                broker once.

        Raises:
            ClientStateError: not started, closed, or nothing is subscribed.
            ConfigError: an argument is out of range, or a topic is static or of the queue type BatchCQ.
            UnsupportedError: a proxy, a broker older than 5.0, or one with ``timerWheelEnable=false``.
            TopicNotFoundError: no subscribed topic has a route.
            BrokerError, RemotingError: every broker refused, or did not answer; of several, the last error.
        """
        config = self._config
        count = config.max_messages if max_messages is None else max_messages
        invisible = config.invisible_duration if invisible_duration is None else invisible_duration
        seconds = config.wait if wait is None else wait
        check_receive(count, invisible, seconds)
        self._client.check_started()
        began = self._client.clock.monotonic()
        messages = await self._received(count, invisible, seconds)
        if self._client.observer is not None and messages:
            waited = self._client.clock.monotonic() - began
            self._client.observer.received(messages, self._identity, seconds=waited)
        return messages

    async def _received(self, count: int, invisible: float, seconds: float) -> list[MessageExt]:
        """Return messages that no call has taken, or pop brokers.

        A pop is never cancelled, since its broker hides what it answers. A call that ends before its pop
        leaves it to the next call with equal arguments, and what it brings to any call.
        """
        deadline = self._client.clock.monotonic() + seconds
        while not (left := self._take_left(count)) and not self._closing:
            wait = max(0.0, deadline - self._client.clock.monotonic())
            is_own, pop = self._pop_for(count, invisible, wait)
            woken = asyncio.ensure_future(self._has_left.wait())
            try:
                await asyncio.wait(
                    {pop, woken}, return_when=asyncio.FIRST_COMPLETED, timeout=None if is_own else wait
                )
            except asyncio.CancelledError:
                self._leave(pop, count, invisible)
                raise
            finally:
                woken.cancel()
            if pop.done():
                messages = [] if pop.cancelled() else pop.result()
                if messages or is_own:
                    return messages
            else:
                self._leave(pop, count, invisible)
        return left

    def _pop_for(
        self, count: int, invisible: float, wait: float
    ) -> tuple[bool, asyncio.Task[list[MessageExt]]]:
        """Return whether a pop is new, and the pop: one that a call has left, or a new one."""
        pops = self._pops_left.get((count, invisible), [])
        if wait and pops and not pops[-1].done():  # of one that has ended the messages are kept in a moment
            pop = pops.pop()
            pop.remove_done_callback(self._end_of_left)
            return False, pop
        asked = self._receiver.wanted(count, invisible, wait)
        pop = asyncio.create_task(self._receiver.receive(asked), name="receive")
        self._receiving.add(pop)
        pop.add_done_callback(self._receiving.discard)
        return True, pop

    def _leave(self, pop: asyncio.Task[list[MessageExt]], count: int, invisible: float) -> None:
        """Leave a pop to a later call."""
        self._pops_left.setdefault((count, invisible), []).append(pop)
        pop.add_done_callback(self._end_of_left)

    def _end_of_left(self, pop: asyncio.Task[list[MessageExt]]) -> None:
        for arguments, pops in list(self._pops_left.items()):
            if pop in pops:
                pops.remove(pop)
            if not pops:
                del self._pops_left[arguments]
        if not pop.cancelled() and pop.exception() is None:
            self._keep(pop.result())

    def _keep(self, messages: Sequence[MessageExt]) -> None:
        """Keep messages for the next calls, and wake those that wait."""
        if messages:
            self._left.extend(messages)
            self._has_left.set()

    def _take_left(self, count: int) -> list[MessageExt]:
        """Take messages that no call has taken, and that are still hidden from others."""
        self._has_left.clear()
        for ready in self._offered:
            with contextlib.suppress(KeyError):  # its calling thread has it
                self._left.extend(ready.popitem()[1])
        self._offered.clear()
        taken: list[MessageExt] = []
        while self._left and len(taken) < count:
            message = self._left.popleft()
            if self._receipts.is_valid(message):
                taken.append(message)
        return taken

    async def _receive_into(self, ready: dict[int, list[MessageExt]], **arguments: Any) -> bool:
        """Receive into ``ready``, for a calling thread to take; return False if there is none."""
        return self._offer(await self.receive(**arguments), ready)

    async def _next_into(self, ready: dict[int, list[MessageExt]]) -> bool:
        """Put the next message of an iteration into ``ready``; return False if the consumer is closed."""
        message = await self._next()
        return message is not None and self._offer([message], ready)

    def _offer(self, messages: list[MessageExt], ready: dict[int, list[MessageExt]]) -> bool:
        if messages:
            ready[0] = messages
            self._offered.append(ready)
        return bool(messages)

    async def ack(self, messages: MessageExt | Sequence[MessageExt], *, batched: bool = False) -> None:
        """Acknowledge received messages: they are consumed, and do not come again.

        Each has a request and an answer of its own; all are on the wire together. A second acknowledgement
        does nothing. Messages may have been received by another member of the group, in any process.

        Args:
            messages: one message, or several.
            batched: send one request to each broker (5.1.3 or newer), which costs far less. Its answer does
                not tell whether each acknowledgement counted: a message of which it did not comes again,
                and nothing is raised.

        Raises:
            AcknowledgeError: some were not acknowledged; ``failed`` has each with its error:
                :class:`ReceiptError` for one whose receipt has ended or was replaced.
            ClientStateError: not started, or closed.
        """
        self._client.check_started()
        given = received_messages(messages)
        failed = await (self._ack_together(given) if batched else self._ack_singly(given))
        if failed:
            raise AcknowledgeError(failed, len(given))

    async def change_invisible_duration(
        self, message: MessageExt, seconds: float, *, suspend: bool = False
    ) -> MessageExt:
        """Hide a received message for ``seconds`` from now on, more or less than before.

        Args:
            message: as returned by :meth:`receive`, or by the last call of this method.
            seconds: 1 second to 12 hours.
            suspend: the delivery after that does not count in ``reconsume_times``; brokers 5.5 or newer.

        Returns:
            The message with its new receipt. The old one is refused from now on.

        Raises:
            ReceiptError: the receipt of the message has ended or was replaced.
            ConfigError: ``seconds`` is out of range.
            UnsupportedError: ``suspend``, and the broker is older than 5.5.
            BrokerError, RemotingConnectError: the broker refused, or nothing was sent.
            RemotingError: the broker did not answer. The receipt may have been replaced: it is refused from
                now on, and the message comes again.
            ClientStateError: not started, or closed.
        """
        check_invisible("seconds", seconds)
        self._client.check_started()
        popped = self._receipts.check(message)
        addr = await self._addr(popped)
        if suspend:
            await self._client.versions.check(SUSPENDED_TRIES, broker_name=popped.info.broker_name, addr=addr)
        command = self._requests.hide(popped, seconds, suspend=suspend)
        try:
            answer = await self._client.remoting.invoke_ok(addr, command)
        except (asyncio.CancelledError, RemotingTimeoutError, ConnectionLostError):  # it may be replaced
            self._receipts.replace(popped)
            raise
        if not answer.ext_fields.get("popTime"):
            raise ReceiptError(f"message {message.msg_id} of {message.topic!r} was acknowledged before")
        told = decode_header(ChangeInvisibleTimeResponseHeader, answer.ext_fields)
        renewed = renewed_extra_info(
            popped.info,
            popped.offset,
            pop_time=told.pop_time,
            invisible_time=told.invisible_time,
            revive_qid=told.revive_qid,
        )
        self._receipts.replace(popped)
        text = format_extra_info(renewed)
        return message.with_values(properties={**message.properties, PROPERTY_POP_CK: text})

    def __aiter__(self) -> AsyncIterator[MessageExt]:
        """Yield every message and wait for more, until the consumer is closed. Acknowledge each yourself.

        Messages are received up to ``max_messages`` together. Several iterations share them, and what one
        leaves behind goes to the next; a message whose invisible time ended meanwhile is left out.
        """
        return ItemsUntilNone(self._next)

    async def _next(self) -> MessageExt | None:
        """Return the next message of an iteration; None: the consumer is closed."""
        while not self._closing:
            if left := self._take_left(1):
                return left[0]
            self._keep(await self.receive())
        return None

    async def _ack_singly(self, given: Sequence[MessageExt]) -> list[_Failed]:
        """Acknowledge each message by its own request; return those that were not."""
        asked = [await self._begin_ack(message) for message in given]
        failed: list[_Failed] = []
        try:
            for message, one in zip(given, asked, strict=True):
                try:
                    if isinstance(one, RocketMQError):
                        raise one
                    await self._requests.check(one)
                except RocketMQError as error:
                    failed.append((message, error))
        finally:
            for one in asked:
                if not isinstance(one, RocketMQError):
                    forget_answer(one.answer)
        return failed

    async def _ack_together(self, given: Sequence[MessageExt]) -> list[_Failed]:
        """Acknowledge the messages of each broker by one request; return those that were not."""
        failed: list[_Failed] = []
        by_broker: dict[str, list[MessageExt]] = {}
        for message in given:
            try:
                by_broker.setdefault(self._receipts.check(message).info.broker_name, []).append(message)
            except ReceiptError as error:
                failed.append((message, error))
        for broker_name, several in by_broker.items():
            command, left_out = self._requests.acknowledge_many(several)
            try:
                addr = await self._addr(PoppedMessage.of(several[0]))
                await self._client.versions.check(BATCH_ACKNOWLEDGEMENTS, broker_name=broker_name, addr=addr)
                if command is not None:
                    await self._client.remoting.invoke_ok(addr, command)
            except RocketMQError as error:
                failed += [(message, error) for message in several]
            else:
                failed += await self._ack_singly(left_out)
        return failed

    async def _begin_ack(self, message: MessageExt) -> SentRequest | RocketMQError:
        """Send an acknowledgement; return the request, or why it was not sent."""
        try:
            popped = self._receipts.check(message)
            addr = await self._addr(popped)
        except RocketMQError as error:
            return error
        return self._requests.send(popped, addr, self._requests.acknowledge(popped))

    async def _addr(self, popped: PoppedMessage) -> str:
        """Return the address of a message's broker; look for the route of its topic if it is not known."""
        try:
            return self._requests.addr(popped)
        except RemotingConnectError:
            await self._client.routes.refresh(self._client.wire_topic(popped.topic))
            return self._requests.addr(popped)

    @property
    def _identity(self) -> Identity:
        return Identity(self._config.group, self._client.client_id, self._config.namespace)

    def _data(self) -> ConsumerData:
        """Return what heartbeats tell about this member."""
        return ConsumerData(
            group_name=self._group,
            consume_type=ConsumeType.CONSUME_POP,
            consume_from_where=self._config.consume_from,
            subscription_data_set=tuple(self._subscriptions.values()),
        )

    async def _join(self) -> None:
        await self._subscriptions.find_routes()
        self._client.endpoint.require(SIMPLE_CONSUMING)
        for broker_name, addr in self._client.routes.masters().items():
            try:
                await self._client.versions.check(SIMPLE_CONSUMING, broker_name=broker_name, addr=addr)
            except RemotingConnectError as error:  # receive checks the version again
                log.warning("broker_version_unknown", broker=broker_name, reason=str(error))
        await self._membership.join(self._data(), lambda: None)
        self._client.background.spawn_loop("look_for_routes", self._subscriptions.look_for_routes_forever)

    def _send_subscriptions_soon(self) -> None:
        """If the consumer runs, send a changed subscription to the brokers at once."""
        if self._client.is_open:
            self._membership.update(self._data())
            self._telling.request()

    async def _send_subscriptions(self) -> None:
        await self._subscriptions.find_routes()
        await self._client.send_heartbeats()

    async def _end_receiving(self) -> None:
        for task in [*self._receiving]:
            task.cancel()
        if self._receiving:
            await asyncio.wait(self._receiving)
