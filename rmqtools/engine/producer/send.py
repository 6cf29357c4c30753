"""The send loop: select a queue, try, avoid the broker that failed, try again within one deadline.

Source of the rules: DefaultMQProducerImpl.sendDefaultImpl, sendSelectImpl (Java client). Ours: the deadline
is shared between attempts (``policy.retry.attempt_timeout``), the route is refreshed at once when a broker
refuses the connection, and an attempt without an answer is never called failed.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Collection, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rmqtools.config import ProducerConfig
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.producer.encode_send import DEFAULT_TOPIC_QUEUE_NUMS, Outgoing
from rmqtools.engine.producer.send_answer import STATUS_BY_CODE, Placed, read_answer, refusal, send_error
from rmqtools.engine.producer.send_way import LoopWay, SendWay
from rmqtools.errors import (
    MessageRejectedError,
    RemotingConnectError,
    RocketMQError,
    SendError,
    UnsupportedError,
)
from rmqtools.model.codes import RequestCode
from rmqtools.model.frozen import maker_of
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import Outcome, SendAttempt, SendResult
from rmqtools.number_of import number_of
from rmqtools.policy.broker_address import find_in_publish
from rmqtools.policy.fault import DETECT_TIMEOUT, LatencyFaultTolerance, fault_of, select_tolerant
from rmqtools.policy.publish import TopicPublishInfo
from rmqtools.policy.retry import SendLoop, attempt_timeout, outcome_of
from rmqtools.policy.select import QueueIndex, select_avoiding
from rmqtools.policy.selectors import MessageQueueSelector
from rmqtools.protocol.wire.command import RemotingCommand

_send_attempt = maker_of(SendAttempt)
_send_loop = maker_of(SendLoop)


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """The caller's choice of a queue. By default: round robin, with another queue after a failure."""

    queue: MessageQueue | None = None
    selector: MessageQueueSelector | None = None
    arg: Any = None
    is_free: bool = field(init=False)  # whether any queue is allowed

    def __post_init__(self) -> None:
        if self.queue is not None and self.selector is not None:
            raise MessageRejectedError("queue and selector exclude one another: give one")
        if self.queue is not None and not isinstance(self.queue, MessageQueue):
            raise MessageRejectedError(
                f"queue={self.queue!r}: want a MessageQueue, as fetch_publish_queues(topic) returns them"
            )
        if self.selector is not None and not callable(self.selector):
            raise MessageRejectedError(
                f"selector={self.selector!r}: want a function selector(queues, message, arg), such as one of "
                "rmqtools.select"
            )
        object.__setattr__(self, "is_free", self.queue is None and self.selector is None)

    def of(self, queues: Sequence[MessageQueue], message: Message | None) -> MessageQueue:
        """Return the caller's queue, if it accepts messages."""
        if self.selector is None or message is None:
            chosen = self.queue
        else:
            chosen = self.selector(queues, message, self.arg)
        if chosen is None or chosen not in queues:
            raise MessageRejectedError(
                f"{chosen} is not among the {number_of(len(queues), 'queue')} to send to"
            )
        return chosen


ANY_QUEUE = QueueChoice()
Sending = asyncio.Future[SendResult] | Coroutine[Any, Any, SendResult]
"""The send of one message, not awaited yet."""


def queue_choice(queue: MessageQueue | None, selector: MessageQueueSelector | None, arg: Any) -> QueueChoice:
    """Return the caller's choice; almost always the shared default.

    Raises:
        MessageRejectedError: both a queue and a selector, or an argument without a selector.
    """
    if selector is None and arg is not None:
        raise MessageRejectedError(
            f"arg={arg!r:.100} without selector: it is what a selector gets; give one, or leave arg out"
        )
    return ANY_QUEUE if queue is None and selector is None else QueueChoice(queue, selector, arg)


def queue_locks() -> defaultdict[MessageQueue, asyncio.Lock]:
    """Return a dictionary that makes a lock for each new queue.

    A request holds the lock of its queue while it is on the wire, because brokers may store pipelined
    requests in another order. Waiting requests get the lock in the order of their calls.
    """
    return defaultdict(asyncio.Lock)


class Sender:
    """Sends encoded messages for one producer, on the client's event loop or on the threads of callers.

    Shared state has no lock, so that a signal handler may send or close whatever it interrupts: each access
    is one call of a built-in type.
    """

    def __init__(self, client: ClientCore, config: ProducerConfig) -> None:
        self._client = client
        self._config = config
        self._index_by_topic: dict[str, QueueIndex] = {}
        self._way: SendWay = LoopWay(client.remoting)
        self.tolerance = LatencyFaultTolerance(enabled=config.send_latency_fault_enable)

    async def publish_info(self, topic: str) -> TopicPublishInfo:
        """Return the queues of a topic, at least one; see ``Routes.publish_info`` for the errors."""
        return await self._client.routes.publish_info(
            topic, default_topic_queue_nums=DEFAULT_TOPIC_QUEUE_NUMS
        )

    async def next_queue(self, topic: str) -> MessageQueue:
        """Return the next queue of a topic in round robin."""
        return self._select(topic, await self.publish_info(topic), ANY_QUEUE, None, None)

    def idle_queue(self, topic: str, busy: Collection[MessageQueue]) -> MessageQueue | None:
        """Return the topic's next queue that is not ``busy``; None: all are, or none is known."""
        info = self._client.routes.known(topic)
        if info is None:
            return None
        for _ in info.queues if len(busy) < len(info.queues) else ():
            queue = self._select(topic, info, ANY_QUEUE, None, None)
            if queue not in busy:
                return queue
        return None

    async def find(self, topic: str, deadline: float) -> TopicPublishInfo:
        """Return the queues of a topic, found before ``deadline``.

        Raises:
            SendError: no route came in time; nothing was sent.
            As :meth:`publish_info`.
        """
        info = self._client.routes.known(topic) or await self._find(topic, deadline, ())
        assert info is not None  # only after attempts
        return info

    async def place(
        self,
        outgoing: Outgoing,
        *,
        choice: QueueChoice = ANY_QUEUE,
        message: Message | None = None,
        first: MessageQueue | None = None,
        timeout: float | None = None,
        way: SendWay | None = None,
        attempts: list[SendAttempt] | None = None,
    ) -> tuple[Placed, list[SendAttempt]]:
        """Try until stored; return one result for all messages, and the attempts, in ``attempts`` if given.

        ``message`` is for the selector; ``first`` is the queue of the first attempt, if already chosen.
        """
        way, now, routes = way or self._way, self._client.clock.monotonic, self._client.routes
        deadline = now() + (self._config.send_timeout if timeout is None else timeout)
        loop, attempts = self._loop_for(choice), [] if attempts is None else attempts
        kept: Placed | None = None
        failure: RocketMQError | None = None
        while loop.attempts_left and (not attempts or now() < deadline):
            target, first = first, None
            if target is None:
                topic = outgoing.topic
                info = routes.known(topic) or await way.on_loop(self._find, topic, deadline, attempts)
                if info is None:
                    break
                target = self._select(topic, info, choice, message, loop.last_broker_name)
            broker_name, addr, began = routes.broker_name(target), "?", now()
            share = attempt_timeout(deadline - began, loop.attempts_left)
            try:
                addr = routes.master_addr(broker_name)
                if outgoing.needs is not None or outgoing.may_be_inner:
                    outgoing, share = await way.on_loop(self._fit, outgoing, target, broker_name, addr, share)
                answer = await way.invoke(addr, outgoing.request_to(target, broker_name), timeout=share)
                if answer.code not in STATUS_BY_CODE:
                    raise refusal(outgoing, answer, addr)
            except RocketMQError as error:
                if isinstance(error, UnsupportedError) and not attempts:
                    raise
                failure, seconds = error, now() - began
                attempts.append(SendAttempt(target, addr, seconds, outcome_of(error), str(error)))
                self._mark(broker_name, seconds, error)
                loop.failed(target, error)
                if isinstance(error, RemotingConnectError):
                    await way.on_loop(self._refresh_route, outgoing.topic, deadline)
                continue
            seconds = now() - began
            attempts.append(_send_attempt(target, addr, seconds, Outcome.STORED, None))
            self._mark(broker_name, seconds, None)
            loop.stored(target, (kept := read_answer(outgoing, target, answer)).status)
        if kept is not None:
            return kept, attempts
        raise send_error(outgoing, attempts) from failure

    async def place_one(
        self,
        outgoing: Outgoing,
        *,
        message: Message,
        choice: QueueChoice = ANY_QUEUE,
        timeout: float | None = None,
        way: SendWay | None = None,
    ) -> SendResult:
        """Try until stored, as :meth:`place`; return the result of the one message."""
        placed, attempts = await self.place(
            outgoing, choice=choice, message=message, timeout=timeout, way=way
        )
        return placed.results(attempts)[0]

    async def place_oneway(self, outgoing: Outgoing, *, choice: QueueChoice, message: Message) -> None:
        """Send it to one broker without an answer."""
        if choice.is_free:
            queue = await self.next_queue(outgoing.topic)
        else:
            queue = choice.of((await self.publish_info(outgoing.topic)).queues, message)
        broker_name = self._client.routes.broker_name(queue)
        addr = self._client.routes.master_addr(broker_name)
        if outgoing.needs is not None:
            await self._check_feature(outgoing, broker_name, addr, self._config.send_timeout)
        command = outgoing.request_to(queue, broker_name, oneway=True)
        await self._client.remoting.invoke_oneway(addr, command, timeout=self._config.send_timeout)

    async def _fit(
        self, outgoing: Outgoing, queue: MessageQueue, broker_name: str, addr: str, timeout: float
    ) -> tuple[Outgoing, float]:
        """Return the request in the form for this queue's type, and the rest of ``timeout``.

        Errors: as of :meth:`_check_feature`.
        """
        began = self._client.clock.monotonic()
        if outgoing.needs is not None:
            await self._check_feature(outgoing, broker_name, addr, timeout)
        if outgoing.may_be_inner:
            is_inner = await self._client.queue_types.holds_batches(queue, timeout=timeout)
            outgoing = replace(outgoing, is_inner=is_inner)
        return outgoing, max(0.0, timeout - (self._client.clock.monotonic() - began))

    async def _check_feature(self, outgoing: Outgoing, broker_name: str, addr: str, timeout: float) -> None:
        """Refuse a message that this broker, or a proxy, would store as an ordinary one."""
        assert outgoing.needs is not None
        await self._client.versions.check(
            outgoing.needs,
            broker_name=broker_name,
            addr=addr,
            wire_topic=outgoing.wire_topic,
            timeout=timeout,
        )

    def _loop_for(self, choice: QueueChoice) -> SendLoop:
        """Return the attempts of a send. A queue chosen by the caller gets one, as in Java, for its order."""
        retries = self._config.retry_times_when_send_failed if choice.is_free else 0
        return _send_loop(1 + retries, self._config.retry_another_broker_when_not_store_ok, None)

    def _select(
        self,
        topic: str,
        info: TopicPublishInfo,
        choice: QueueChoice,
        message: Message | None,
        last_broker_name: str | None,
    ) -> MessageQueue:
        """Return the queue to try next."""
        if not choice.is_free:
            return choice.of(info.queues, message)
        index = self._index_by_topic.get(topic)
        if index is None:
            index = self._index_by_topic.setdefault(topic, QueueIndex(random.getrandbits(31)))
        if not self.tolerance.enabled:
            return select_avoiding(info.queues, index, last_broker_name)
        now_ms = round(self._client.clock.monotonic() * 1000)
        return select_tolerant(info.queues, index, last_broker_name, self.tolerance, now_ms)

    async def _find(
        self, topic: str, deadline: float, attempts: Sequence[SendAttempt]
    ) -> TopicPublishInfo | None:
        """Return a topic's queues within the deadline; None: they disappeared after earlier attempts."""
        try:
            async with asyncio.timeout(max(0.0, deadline - self._client.clock.monotonic())):
                return await self.publish_info(topic)
        except TimeoutError as error:
            if attempts:
                return None
            failure = self._client.name_server.last_failure
            raise SendError(
                f"no route of topic {topic!r} came before the send's deadline: nothing was sent"
                + (f" ({failure}; check name_server={self._config.name_server!r})" if failure else "")
            ) from error
        except RocketMQError:
            if attempts:
                return None
            raise  # nothing was sent, so the outcome is certain

    def _mark(self, broker_name: str, seconds: float, error: RocketMQError | None) -> None:
        """Report an attempt's result to fault avoidance, if it is on."""
        if not self.tolerance.enabled:
            return
        isolation, reachable = fault_of(error, detector_runs=self._config.start_detector_enable)
        self.tolerance.update(
            broker_name,
            round(seconds * 1000),
            isolation=isolation,
            reachable=reachable,
            now_ms=round(self._client.clock.monotonic() * 1000),
        )

    async def probe_brokers(self) -> None:
        """Probe every failed broker that is due, so that it is used again as soon as it answers.

        Source of the rule: LatencyFaultToleranceImpl.detectByOneRound (Java client).
        """
        client = self._client
        for name in self.tolerance.due_for_detection(round(client.clock.monotonic() * 1000)):
            addr = find_in_publish(client.routes.tables.broker_addrs, name)
            self.tolerance.detected(name, None if addr is None else await self._answers(addr))

    async def _answers(self, addr: str) -> bool:
        try:
            command = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)
            await self._client.remoting.invoke_ok(addr, command, timeout=DETECT_TIMEOUT)
        except RocketMQError:
            return False
        return True

    async def _refresh_route(self, topic: str, deadline: float) -> None:
        """Refresh the route, to learn of a dead broker before the next poll. Errors are ignored."""
        try:
            async with asyncio.timeout(max(0.0, deadline - self._client.clock.monotonic()) / 2):
                await self._client.routes.refresh(topic)
        except (RocketMQError, TimeoutError):
            return
