"""Fetching a held queue: one pull after the other, long polls included, until the queue is dropped.

Source of the rules: DefaultMQPushConsumerImpl.pullMessage, PullAPIWrapper (Java client). Ours: the place of a
queue is mended at once where it is not stored any more or was reset (OFFSET_ILLEGAL; Java gives the queue up
and takes it again after 10 s), a slave is asked when the master does not answer, and a broker that has
forgotten this member is told of it at once.
"""

import asyncio
from typing import NamedTuple, Protocol

from rmqtools.config_consumer import ConsumerConfig
from rmqtools.engine.client import ClientCore
from rmqtools.engine.offset_store import OffsetStore
from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.engine.pull_command import parse_pull
from rmqtools.errors import BrokerError, RemotingError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import SubscriptionData
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import PullResult, PullStatus
from rmqtools.model.route import MASTER_ID
from rmqtools.model.sys_flag import build_pull_sys_flag, clear_commit_offset_flag
from rmqtools.policy.subscription import TAG, matches_tags
from rmqtools.protocol.command import RemotingCommand, request
from rmqtools.protocol.headers import PullMessageRequestHeader
from rmqtools.protocol.messages import decode_messages
from rmqtools.protocol.template import Request, RequestTemplate

log = get_logger(__name__)

FLOW_CONTROL_DELAY = 0.020  # seconds; upstream PULL_TIME_DELAY_MILLS_WHEN_BROKER_FLOW_CONTROL
FORGOTTEN_DELAY = 0.5  # seconds until a broker that had forgotten this member is asked again
LOOK_AGAIN = 0.5  # seconds after which a queue that may not be fetched is looked at again in any case
_TRUST_AGAIN = 30.0  # seconds until a broker that did not answer is asked again because a slave says so
BUSY = (ResponseCode.FLOW_CONTROL, ResponseCode.SYSTEM_BUSY)
FORGOTTEN = (
    ResponseCode.SUBSCRIPTION_NOT_EXIST,
    ResponseCode.SUBSCRIPTION_NOT_LATEST,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
)


class PullOwner(Protocol):
    """The consumer for which queues are fetched."""

    group: str
    config: ConsumerConfig
    client: ClientCore
    offsets: OffsetStore

    def subscription_of(self, topic: str) -> SubscriptionData:
        """What of a topic is wanted."""

    def offset_for_pull(self, queue: MessageQueue) -> int | None:
        """The consumer offset that a pull brings along for the broker to store; None: none."""

    def passed_over(self, held: ProcessQueue) -> None:
        """Nothing of a queue is held after an answer: what comes before ``next_offset`` is consumed."""

    def may_pull(self, held: ProcessQueue, *, coming: PullResult | None = None) -> bool:
        """Whether there is room for more of a queue, after what is ``coming``, and it may be fetched now."""

    def take(self, held: ProcessQueue, messages: list[MessageExt]) -> None:
        """Handle messages that were just fetched."""

    def restart(self, held: ProcessQueue, offset: int) -> None:
        """Give up what is held of a queue and go on at another offset."""

    def note_pulled(self, topic: str, *, count: int, seconds: float) -> None:
        """Count messages that were fetched."""


class _Asked(NamedTuple):
    """A pull on the wire: from which offset, what of the topic, whom, since when."""

    offset: int
    subscription: SubscriptionData
    broker_addr: str
    began: float
    answer: asyncio.Future[RemotingCommand]

    def forget(self) -> None:
        """Wait no more for the answer; if there is an error already, nobody has to see it."""
        if not self.answer.cancel() and not self.answer.cancelled():
            self.answer.exception()


class _Form(NamedTuple):
    """How a queue is asked for messages while a subscription stays as it is."""

    subscription: SubscriptionData
    template: RequestTemplate


class Puller:
    """Fetches all held queues of one consumer, each in a task of its own."""

    def __init__(self, owner: PullOwner) -> None:
        self._owner = owner
        self._client = owner.client
        self._config = owner.config
        self._broker_ids: dict[MessageQueue, int] = {}
        self._unanswered: dict[str, float] = {}  # address -> when a pull failed there
        self._told: dict[str, float] = {}  # address -> when a broker that had forgotten us was told
        self._tasks: dict[asyncio.Task[None], ProcessQueue] = {}
        self._forms: dict[ProcessQueue, _Form] = {}

    def start(self, held: ProcessQueue) -> None:
        """Begin to fetch a queue."""
        task = asyncio.create_task(self._pull_forever(held), name=f"pull {held.queue}")
        self._tasks[task] = held
        task.add_done_callback(self._ended)

    def stop(self, held: ProcessQueue) -> None:
        """Wait no more for an answer about a queue that was dropped."""
        for task in [task for task, fetched in self._tasks.items() if fetched is held]:
            task.cancel()

    async def close(self) -> None:
        """Stop fetching."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ask(self, held: ProcessQueue, offset: int) -> _Asked:
        """Ask for the messages from ``offset`` on; a broker holds the answer until there are some."""
        held.pulled()
        queue = held.queue
        subscription = self._owner.subscription_of(queue.topic)
        found = self._client.routes.reading_addr(queue, self._broker_ids.get(queue, MASTER_ID))
        command = self._request(held, offset, subscription, is_slave=found.is_slave)
        began, timeout = self._client.clock.monotonic(), self._config.pull_timeout
        answer = self._client.remoting.invoke(found.broker_addr, command, timeout=timeout)
        return _Asked(offset, subscription, found.broker_addr, began, asyncio.ensure_future(answer))

    async def _answer(self, queue: MessageQueue, asked: _Asked) -> PullResult:
        try:
            answer = await asked.answer
        except RemotingError:
            self._unanswered[asked.broker_addr] = self._client.clock.monotonic()
            self._turn_to_next(queue)
            self._owner.offsets.doubt(self._client.routes.broker_name(queue))
            raise
        result = parse_pull(answer, asked.broker_addr)
        if self._answers(queue, result.suggest_which_broker_id):
            self._broker_ids[queue] = result.suggest_which_broker_id
        return result

    def _answers(self, queue: MessageQueue, broker_id: int) -> bool:
        """Whether a broker that another one suggests did not just leave a pull without an answer."""
        addr = self._client.routes.reading_addr(queue, broker_id).broker_addr
        return self._client.clock.monotonic() - self._unanswered.get(addr, -_TRUST_AGAIN) >= _TRUST_AGAIN

    def _request(
        self, held: ProcessQueue, offset: int, subscription: SubscriptionData, *, is_slave: bool
    ) -> Request:
        noted = self._owner.offset_for_pull(held.queue)
        form = self._forms.get(held)
        if form is None or form.subscription != subscription:
            form = self._forms[held] = _Form(subscription, self._template(held.queue, subscription))
        by_tags = _is_by_tags(subscription)
        sys_flag = build_pull_sys_flag(commit_offset=bool(noted), suspend=True, subscription=by_tags)
        if is_slave:
            sys_flag = clear_commit_offset_flag(sys_flag)
        return form.template.fill(offset, sys_flag, noted or 0)

    def _template(self, queue: MessageQueue, subscription: SubscriptionData) -> RequestTemplate:
        header = PullMessageRequestHeader(
            consumer_group=self._owner.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=0,
            max_msg_nums=self._config.pull_batch_size,
            sys_flag=0,
            commit_offset=0,
            suspend_timeout_millis=round(self._config.long_poll_timeout * 1000),
            subscription=subscription.sub_string if _is_by_tags(subscription) else None,
            sub_version=subscription.sub_version,
            expression_type=subscription.expression_type,
            bname=queue.broker_name,
        )
        return RequestTemplate(request(header), ("queueOffset", "sysFlag", "commitOffset"))

    async def _pull_forever(self, held: ProcessQueue) -> None:
        while not held.is_dropped:
            try:
                await self._pull_in_turn(held)
            except RocketMQError as error:
                await self._after_error(held, error)
            except Exception as error:  # the outermost frame of a queue's task: the queue must go on
                log.error("pull_failed", queue=str(held.queue), reason=repr(error), exc_info=error)
                await self._pause(held, self._config.delay_after_error)

    async def _pull_in_turn(self, held: ProcessQueue) -> None:
        """Pull until the queue is dropped or something fails.

        While an answer is decoded and handed out, a broker that has more works on the next one: without that
        it would be idle for as long as this takes. Where it has no more, messages are handed out before the
        next pull is made. The queue's ``next_offset`` moves with what was handed out.
        """
        following: _Asked | None = None
        goes_well = False  # else a pull would stay at the broker each time, and could take a reset with it
        try:
            while not held.is_dropped:
                if not self._owner.may_pull(held):
                    held.pulled()  # it waits, it is not dead
                    await held.changed(LOOK_AGAIN)
                    continue
                asked, following = following or self._ask(held, held.next_offset), None
                result = await self._answer(held.queue, asked)
                seconds = self._client.clock.monotonic() - asked.began
                if not self._is_wanted(held, asked):
                    continue
                has_more = result.status is PullStatus.FOUND and result.next_begin_offset < result.max_offset
                if goes_well and has_more and self._owner.may_pull(held, coming=result):
                    following = self._ask(held, result.next_begin_offset)
                    await asyncio.sleep(0)  # it leaves before the decoding begins
                    if not self._is_wanted(held, asked):
                        return
                await self._handle(held, result, seconds)
                goes_well = True
        finally:
            if following is not None:
                following.forget()

    def _is_wanted(self, held: ProcessQueue, asked: _Asked) -> bool:
        """Whether a queue is still to be read where a pull asked. A broker may hold it for a long time."""
        wanted = held.next_offset, self._owner.subscription_of(held.queue.topic)
        return not held.is_dropped and wanted == (asked.offset, asked.subscription)

    async def _handle(self, held: ProcessQueue, result: PullResult, seconds: float) -> None:
        if result.status is PullStatus.FOUND:
            messages = self._decode(held.queue, result)
            held.next_offset = result.next_begin_offset
            self._owner.note_pulled(held.queue.topic, count=len(messages), seconds=seconds)
            if messages:
                held.put(messages)
                self._owner.take(held, messages)
        elif result.status is PullStatus.OFFSET_ILLEGAL:
            log.warning(
                "pull_offset_moved",
                queue=str(held.queue),
                asked=held.next_offset,
                next=result.next_begin_offset,
                stored=(result.min_offset, result.max_offset),
            )
            if result.min_offset <= held.next_offset <= result.max_offset:  # an administrator has reset it
                self._owner.restart(held, result.next_begin_offset)
            else:
                await self._restart(held, result.next_begin_offset)
            return
        else:
            held.next_offset = result.next_begin_offset
        if held.count == 0:  # nothing is being consumed: what was passed over counts as consumed
            self._owner.passed_over(held)

    async def _restart(self, held: ProcessQueue, offset: int) -> None:
        """Go on at another offset, after what was fetched is consumed: nobody can fetch it again."""
        asked = held.next_offset
        while held.count and not held.is_dropped:
            held.pulled()  # it waits, it is not dead
            await held.changed(LOOK_AGAIN)
        if not held.is_dropped and held.next_offset == asked:
            self._owner.restart(held, offset)

    def _decode(self, queue: MessageQueue, result: PullResult) -> list[MessageExt]:
        messages = decode_messages(result.body, broker_name=queue.broker_name)
        subscription = self._owner.subscription_of(queue.topic)
        if not subscription.tags_set:
            return messages
        return [message for message in messages if matches_tags(subscription, message.tags)]

    async def _after_error(self, held: ProcessQueue, error: RocketMQError) -> None:
        log.warning("pull_failed", group=self._owner.group, queue=str(held.queue), reason=str(error))
        code = error.code if isinstance(error, BrokerError) else None
        if code in BUSY:
            await self._pause(held, FLOW_CONTROL_DELAY)
        elif code in FORGOTTEN:
            assert isinstance(error, BrokerError)
            await self._tell(held.queue, error.addr)
            await self._pause(held, FORGOTTEN_DELAY)
        else:
            await self._pause(held, self._config.delay_after_error)

    async def _tell(self, queue: MessageQueue, addr: str) -> None:
        """Let a broker know this member again; once, however many queues it was asked for."""
        now = self._client.clock.monotonic()
        if now - self._told.get(addr, -FORGOTTEN_DELAY) >= FORGOTTEN_DELAY:
            self._told[addr] = now
            await self._client.send_heartbeat(queue.broker_name, addr)

    async def _pause(self, held: ProcessQueue, seconds: float) -> None:
        deadline = self._client.clock.monotonic() + seconds
        while not held.is_dropped and (left := deadline - self._client.clock.monotonic()) > 0:
            held.pulled()
            await held.changed(left)

    def _turn_to_next(self, queue: MessageQueue) -> None:
        """Ask another broker of the set the next time, if there is one."""
        ids = sorted(self._client.routes.tables.broker_addrs.get(queue.broker_name, ()))
        now = self._broker_ids.get(queue, MASTER_ID)
        if ids:
            self._broker_ids[queue] = next((id_ for id_ in ids if id_ > now), ids[0])

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._forms.pop(self._tasks.pop(task), None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("pull_task_failed", task=task.get_name(), reason=repr(error), exc_info=error)


def _is_by_tags(subscription: SubscriptionData) -> bool:
    """Conditions are not sent with a pull: brokers compile them once, from the heartbeat."""
    return subscription.expression_type == TAG
