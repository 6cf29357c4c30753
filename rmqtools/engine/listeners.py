"""Calling the user's listeners, and counting how they do."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from rmqtools.clock import Clock
from rmqtools.errors import ConfigError
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.consume_rates import ConsumeRates

log = get_logger(__name__)

ConsumeStatus = ConsumeConcurrentlyStatus | ConsumeOrderlyStatus
Listener = Callable[[Sequence[MessageExt], ConsumeContext], Awaitable[object]]
MessageQueueListener = Callable[[str, Collection[MessageQueue], Collection[MessageQueue]], None]


@dataclass(slots=True)
class ListenerCounts:
    """What became of the messages of one topic, since the start."""

    succeeded: int = 0
    failed: int = 0
    seconds: float = 0.0  # spent in the listener
    calls: int = 0


class Listeners:
    """The listeners of one consumer, by topic as its user knows it."""

    def __init__(self, clock: Clock, rates: ConsumeRates, *, orderly: bool) -> None:
        self._clock = clock
        self._rates = rates
        self._by_topic: dict[str, Listener] = {}
        self.counts: dict[str, ListenerCounts] = {}
        self._success, self._failure = _STATUSES[orderly]

    def register(self, topic: str, listener: Listener) -> None:
        """Call ``listener`` for messages of a topic."""
        if not callable(listener):
            raise ConfigError(f"listener of topic {topic!r} is {listener!r}: want a function")
        self._by_topic[topic] = listener
        self.counts.setdefault(topic, ListenerCounts())

    async def call(self, messages: Sequence[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """What the listener of the messages' topic says; failure, logged, where it raises.

        None is success: a Python function that ends without an error has done its work. (Java's null is
        a failure.)
        """
        topic = messages[0].topic
        counts = self.counts.setdefault(topic, ListenerCounts())
        began = self._clock.monotonic()
        try:
            status = await self.ask(messages, context)
        except (Exception, asyncio.CancelledError) as error:  # a user's callback: the messages come again
            if _is_being_cancelled():
                raise
            log.error(
                "listener_failed",
                topic=topic,
                first_msg_id=messages[0].msg_id,
                count=len(messages),
                reason=repr(error),
                exc_info=error,
            )
            status = self._failure
        now = self._clock.monotonic()
        failed = len(messages) if status is self._failure else 0
        succeeded = len(messages) - failed
        counts.seconds += now - began
        counts.calls += 1
        counts.failed += failed
        counts.succeeded += succeeded
        self._rates.consumed(topic, now, succeeded=succeeded, failed=failed, seconds=now - began)
        return status

    def has(self, topic: str) -> bool:
        """Whether a topic has a listener."""
        return topic in self._by_topic

    async def ask(self, messages: Sequence[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """What the listener of the messages' topic says; raises what it raises, counts nothing.

        Raises:
            LookupError: the topic has none.
            TypeError: it returned something that is no answer.
        """
        if (listener := self._by_topic.get(messages[0].topic)) is None:
            raise LookupError(
                f"no listener for topic {messages[0].topic!r}: its message failed at another member of the "
                "group; all members must subscribe to the same topics"
            )
        return self._checked(await listener(messages, context))

    def _checked(self, answer: object) -> ConsumeStatus:
        if answer is None:
            return self._success
        if not isinstance(answer, type(self._success)):
            raise TypeError(
                f"the listener returned {answer!r}: want None or a {type(self._success).__name__}"
            )
        return answer


async def end_listeners(tasks: Set[asyncio.Task[None]], timeout: float, *, group: str) -> None:
    """Give listeners under way ``timeout`` seconds to end; what is left of them is logged and cancelled."""
    waited = tasks - {asyncio.current_task()}  # a listener may close its own consumer
    if not waited:
        return
    _, late = await asyncio.wait(waited, timeout=timeout)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    if late:
        log.warning("listeners_still_running", group=group, count=len(late))


def off_the_loop(
    listener: MessageQueueListener | None, threads: ThreadPoolExecutor
) -> MessageQueueListener | None:
    """The same listener on a thread, for blocking code; its errors are logged there."""
    if listener is None:
        return None

    def notice(topic: str, all_queues: Collection[MessageQueue], mine: Collection[MessageQueue]) -> None:
        threads.submit(tell_queues, listener, topic, all_queues, mine)

    return notice


def tell_queues(
    listener: MessageQueueListener,
    topic: str,
    all_queues: Collection[MessageQueue],
    mine: Collection[MessageQueue],
) -> None:
    """Call a user's queue listener; an error is logged."""
    try:
        listener(topic, all_queues, mine)
    except Exception as error:  # a user's callback: whatever it does, the consumer goes on
        log.error("message_queue_listener_failed", topic=topic, reason=repr(error), exc_info=error)


def _is_being_cancelled() -> bool:
    """Whether this task is to end; if not, a CancelledError is something the listener did to itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


_STATUSES: dict[bool, tuple[ConsumeStatus, ConsumeStatus]] = {
    False: (ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER),
    True: (ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT),
}
