"""Popping (5.x): the broker hands out messages and hides them until they are acknowledged.

Each popped queue has a task that asks for messages, one pop after the other, long polls included. A message
that nobody acknowledges within the invisible time comes again, from the retry topic of its topic, which
brokers pop along with the topic itself.
Source of the rules: DefaultMQPushConsumerImpl.popMessage, processPopResult,
PullAPIWrapper.popAsync (Java client). Ours: a broker that has forgotten this
member is told of it at once, and of a topic just unsubscribed nothing is asked for or handed out.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from rmqtools.config_consumer import PushConsumerConfig
from rmqtools.engine.acknowledge import Acknowledger
from rmqtools.engine.client import ClientCore
from rmqtools.engine.pop_process_queue import PopProcessQueue
from rmqtools.engine.pull import BUSY, FLOW_CONTROL_DELAY, FORGOTTEN, FORGOTTEN_DELAY, LOOK_AGAIN
from rmqtools.errors import BrokerError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import SubscriptionData
from rmqtools.model.message import MessageExt
from rmqtools.model.names import without_this_namespace
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.assignment import pop_init_mode
from rmqtools.policy.pop_delay import invisible_time
from rmqtools.policy.reconsume import max_reconsume_times
from rmqtools.policy.subscription import matches_tags
from rmqtools.protocol.command import RemotingCommand, request
from rmqtools.protocol.headers import (
    PopMessageRequestHeader,
    PopMessageResponseHeader,
    decode_header,
)
from rmqtools.protocol.messages import decode_messages
from rmqtools.protocol.popped_messages import with_extra_info

log = get_logger(__name__)

_NOTHING = (ResponseCode.POLLING_TIMEOUT, ResponseCode.PULL_NOT_FOUND)
_ANSWER_PATIENCE = 10.0  # seconds beyond the long poll; upstream PullAPIWrapper.popAsync


class PopOwner(Protocol):
    """The consumer for which queues are popped."""

    group: str
    push_config: PushConsumerConfig
    client: ClientCore
    pop_table: dict[MessageQueue, PopProcessQueue]
    is_suspended: bool

    def subscription_of(self, topic: str) -> SubscriptionData:
        """What of a topic is wanted."""

    def is_subscribed(self, topic: str) -> bool:
        """Whether messages of a topic are wanted (still)."""

    def take_popped(self, held: PopProcessQueue, messages: list[MessageExt]) -> None:
        """Handle messages that were just popped; topics as users know them."""

    def note_pulled(self, topic: str, *, count: int, seconds: float) -> None:
        """Count messages that were popped."""


class Popper:
    """Pops all queues of the owner's ``pop_table``, each in a task of its own."""

    def __init__(self, owner: PopOwner, acknowledger: Acknowledger) -> None:
        self._owner = owner
        self._config = owner.push_config
        self._client = owner.client
        self._acknowledger = acknowledger
        self._invisible_time = invisible_time(self._config.pop_invisible_time)
        self._max_times = max_reconsume_times(self._config.max_reconsume_times)
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, held: PopProcessQueue) -> None:
        """Begin to pop a queue."""
        task = asyncio.create_task(self._pop_forever(held), name=f"pop {held.queue}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Stop popping."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def pop(self, held: PopProcessQueue) -> list[MessageExt] | None:
        """Ask once for messages; a broker holds the answer until there are some, or it has none.

        None: too many clients wait at the broker already.
        """
        addr = self._client.routes.master_addr(self._client.routes.broker_name(held.queue))
        timeout = self._config.long_poll_timeout + _ANSWER_PATIENCE
        answer = await self._client.remoting.invoke(addr, request(self._header(held.queue)), timeout=timeout)
        if answer.code == ResponseCode.SUCCESS:
            return self._decode(held.queue, answer)
        if answer.code == ResponseCode.POLLING_FULL:
            return None
        if answer.code in _NOTHING:
            return []
        raise BrokerError(answer.code, answer.remark, addr)

    def _header(self, queue: MessageQueue) -> PopMessageRequestHeader:
        subscription = self._owner.subscription_of(queue.topic)
        return PopMessageRequestHeader(
            consumer_group=self._owner.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            max_msg_nums=self._config.pop_batch_nums,
            invisible_time=round(self._invisible_time * 1000),
            poll_time=round(self._config.long_poll_timeout * 1000),
            born_time=self._client.clock.now_ms(),
            init_mode=pop_init_mode(self._config.consume_from),
            exp_type=subscription.expression_type,
            exp=subscription.sub_string,
            bname=queue.broker_name,
        )

    def _decode(self, queue: MessageQueue, answer: RemotingCommand) -> list[MessageExt]:
        return with_extra_info(
            decode_messages(answer.body, broker_name=queue.broker_name),
            decode_header(PopMessageResponseHeader, answer.ext_fields),
            topic=without_this_namespace(queue.topic, self._config.namespace),
            broker_name=queue.broker_name,
            order=False,
        )

    async def _pop_forever(self, held: PopProcessQueue) -> None:
        while not held.is_dropped:
            held.popped()
            if not self._may_pop(held):
                await held.changed(LOOK_AGAIN)
                continue
            began = self._client.clock.monotonic()
            try:
                messages = await self.pop(held)
            except RocketMQError as error:
                await self._after_error(held, error)
                continue
            except Exception as error:  # the outermost frame of a queue's task: the queue must go on
                log.error("pop_failed", queue=str(held.queue), reason=repr(error), exc_info=error)
                await held.changed(self._config.delay_after_error)
                continue
            if messages is None:
                await held.changed(self._config.delay_after_error)
            elif messages:
                await self._handle(held, messages, self._client.clock.monotonic() - began)

    def _may_pop(self, held: PopProcessQueue) -> bool:
        if self._owner.is_suspended or not self._owner.is_subscribed(held.queue.topic):
            return False
        return held.wait_ack_count <= self._config.pop_threshold_for_queue

    async def _handle(self, held: PopProcessQueue, messages: Sequence[MessageExt], seconds: float) -> None:
        """Hand out what is wanted; the rest must not come again, unless the whole topic is left to others."""
        if not self._owner.is_subscribed(held.queue.topic):
            return
        subscription = self._owner.subscription_of(held.queue.topic)
        wanted = [
            message
            for message in messages
            if matches_tags(subscription, message.tags) and message.reconsume_times <= self._max_times
        ]
        self._owner.note_pulled(held.queue.topic, count=len(wanted), seconds=seconds)
        if wanted:
            held.found(len(wanted))
            self._owner.take_popped(held, wanted)
        kept = {id(message) for message in wanted}
        others = [message for message in messages if id(message) not in kept]
        await asyncio.gather(*map(self._acknowledger.acknowledge, others))

    async def _after_error(self, held: PopProcessQueue, error: RocketMQError) -> None:
        log.warning("pop_failed", group=self._owner.group, queue=str(held.queue), reason=str(error))
        code = error.code if isinstance(error, BrokerError) else None
        if code in FORGOTTEN:
            await self._client.send_heartbeats()
            await held.changed(FORGOTTEN_DELAY)
        else:
            await held.changed(FLOW_CONTROL_DELAY if code in BUSY else self._config.delay_after_error)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("pop_task_failed", task=task.get_name(), reason=repr(error), exc_info=error)
