"""Calls the user's listeners, and counts their results."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmqtools.clock import Clock
from rmqtools.engine.connection.background import Background
from rmqtools.engine.connection.refusals import ErrorListener, report_error
from rmqtools.engine.user_functions import check_error_listener, check_queue_listener
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.observer import Identity, Observer
from rmqtools.policy.consume_rates import ConsumeRates

if TYPE_CHECKING:
    from rmqtools.engine.consumer.trace import ConsumeTraces

log = get_logger(__name__)

LONG_CALL = 50e-6  # seconds; below that, waking another thread costs as much as the call
_MOST_ERROR_TEXT = 300
_LATELY = 100  # calls
_FEW = 0.05  # the share of long calls that may only have waited for the interpreter

ConsumeStatus = ConsumeConcurrentlyStatus | ConsumeOrderlyStatus
Listener = Callable[[list[MessageExt], ConsumeContext], Awaitable[object]]
BlockingListener = Callable[[list[MessageExt], ConsumeContext], object]
OnThread = Callable[[Callable[[], Any]], Awaitable[Any]]
MessageQueueListener = Callable[[str, Collection[MessageQueue], Collection[MessageQueue]], None]


@dataclass(slots=True)
class _Calls:
    count: int = 0
    long: int = 0

    def add(self, count: int, long: int) -> None:
        self.count += count
        self.long += long

    @property
    def are_short(self) -> bool:
        return self.long <= self.count * _FEW


class Pace:
    """Records whether listener calls are short: nearly all of those that ended lately.

    Attributes:
        is_quick: the last hundred calls were short; False before.
    """

    def __init__(self) -> None:
        self.is_quick = False
        self._lately = _Calls()
        self._since_look = _Calls()

    def note(self, calls: int, long: int) -> None:
        """Note calls that have ended; ``long`` of them took more than ``LONG_CALL``."""
        self._since_look.add(calls, long)
        self._lately.add(calls, long)
        if self._lately.count >= _LATELY or self._lately.long > _LATELY * _FEW:
            self.is_quick, self._lately = self._lately.are_short, _Calls()

    def look(self) -> bool | None:
        """Look at the calls noted since the last look. None: there are none."""
        seen, self._since_look = self._since_look, _Calls()
        return seen.are_short if seen.count else None


class Listeners:
    """The listeners of one consumer, by plain topic.

    Attributes:
        pace: of the calls that acknowledged everything (in order: not noted).
        is_orderly: messages are consumed in order.
        success: the status of a call that acknowledges everything.
    """

    def __init__(
        self,
        clock: Clock,
        rates: ConsumeRates,
        *,
        group: str,
        orderly: bool,
        observer: Observer | None = None,
        identity: Identity | None = None,
        traces: "ConsumeTraces | None" = None,
    ) -> None:
        self._clock = clock
        self._traces = traces
        self._group = group
        self._observer = observer
        self._identity = identity or Identity(group, "")
        self._rates = rates
        self._by_topic: dict[str, Listener] = {}
        self._blocking: dict[str, BlockingListener] = {}
        self._on_thread: OnThread | None = None
        self._has_sockets = False
        self.is_orderly = orderly
        self.success, self._failure = _STATUSES[orderly]
        self.pace = Pace()
        self._closers: set[asyncio.Task[Any] | None] = set()
        self._closer_came = asyncio.Event()

    def register(self, topic: str, listener: Listener) -> None:
        """Register ``listener`` for messages of a topic; which its caller has checked."""
        self._by_topic[topic] = listener if self._traces is None else self._traced(listener, self._traces)

    def block_on(self, on_thread: OnThread, *, has_sockets: bool = False) -> None:
        """Note that listeners are functions that may block; ``on_thread`` runs something on their threads.

        ``has_sockets``: these threads may wait for sockets by themselves.
        """
        self._on_thread = on_thread
        self._has_sockets = has_sockets

    def register_blocking(self, topic: str, listener: BlockingListener) -> None:
        """Register the function behind a topic's listener, for :meth:`call_here`."""
        self._blocking[topic] = (
            listener if self._traces is None else self._traced_here(listener, self._traces)
        )

    @property
    def on_thread(self) -> OnThread | None:
        """Runs a function that uses :meth:`call_here`; None: listeners are coroutines or are observed.

        An observer is called on the event loop, so each call that is observed begins and ends there.
        """
        return None if self.is_observed else self._on_thread

    @property
    def may_pull(self) -> bool:
        """True if a thread of the listeners may pull by itself: their calls are short."""
        return self.pace.is_quick and self._has_sockets and not self.is_observed

    def count(self, topic: str, status: ConsumeStatus, *, count: int, seconds: float, calls: int = 1) -> None:
        """Count calls with equal results: all their messages and seconds."""
        failed = count if status is self._failure else 0
        self._rates.consumed(
            topic,
            self._clock.monotonic(),
            succeeded=count - failed,
            failed=failed,
            seconds=seconds,
            calls=calls,
        )

    def listener_of(self, topic: str) -> Listener:
        """Return the coroutine function to call for a topic's messages; it raises if there is no listener.

        The caller handles what it raises (:meth:`failed`) and returns (:meth:`checked`), and counts the call
        (:meth:`count`).
        """
        return (self._by_topic.get(topic) or self.ask) if self._observer is None else self._observed

    def call_here(self, topic: str, messages: Sequence[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """On a thread: call the listener of a topic; an exception counts as failure. The caller counts it."""
        try:
            listener = self._blocking.get(topic) or self._refuse_here
            answer = listener([*messages], context)
            return self.success if answer is None else self.checked(answer)
        except BaseException as error:  # noqa: BLE001 - a user's callback
            return self.failed(messages, error)

    def _refuse_here(self, messages: list[MessageExt], _: ConsumeContext) -> object:
        raise _no_listener(messages[0].topic)

    def failed(self, messages: Sequence[MessageExt], error: BaseException) -> ConsumeStatus:
        """Return the status of a call that raised: its messages are retried. Logs the error."""
        first = messages[0]
        self._rates.last_error = repr(error)[:_MOST_ERROR_TEXT]
        log.error(
            "listener_failed",
            topic=first.topic,
            first_msg_id=first.msg_id,
            count=len(messages),
            reason=repr(error),
            exc_info=error,
        )
        return self._failure

    async def _observed(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        assert self._observer is not None
        with self._observer.processing(list(messages), self._identity) as processing:
            status = await self.ask(messages, context)
            if status is self._failure:
                processing.failed(status.value)
            return status

    @property
    def is_observed(self) -> bool:
        """True if listeners must run in the context of the task that calls them."""
        return self._observer is not None

    def has(self, topic: str) -> bool:
        """Return whether a topic has a listener."""
        return topic in self._by_topic

    async def ask(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """Call the listener of the messages' topic; exceptions pass through, nothing is counted.

        Raises:
            LookupError: the topic has no listener.
            TypeError: the return value is not a valid result.
        """
        topic = messages[0].topic
        if (listener := self._by_topic.get(topic)) is None:
            raise _no_listener(topic)
        return self.checked(await listener(messages, context))

    def _traced(self, listener: Listener, traces: "ConsumeTraces") -> Listener:
        async def call(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
            traced = traces.begin(tuple(messages))
            try:
                status = self.checked(await listener(messages, context))
            except (Exception, asyncio.CancelledError):  # a user's callback
                if not _is_being_cancelled():  # then the result does not count
                    traces.raised(traced)
                raise
            traces.end(traced, status, context)
            return status

        return call

    def _traced_here(self, listener: BlockingListener, traces: "ConsumeTraces") -> BlockingListener:
        def call(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
            traced = traces.begin(tuple(messages))
            try:
                status = self.checked(listener(messages, context))
            except BaseException:
                traces.raised(traced)
                raise
            traces.end(traced, status, context)
            return status

        return call

    def closes(self, task: asyncio.Task[Any] | None) -> None:
        """Note that ``task`` closes the consumer. If a listener runs in it, closing does not wait for it."""
        self._closers.add(task)
        self._closer_came.set()

    async def end(self, background: Background, timeout: float) -> None:
        """Wait ``timeout`` seconds for listeners to end; log and cancel those that do not."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while (waited := background.tasks - self._closers) and (left := deadline - loop.time()) > 0:
            self._closer_came.clear()
            came = asyncio.ensure_future(self._closer_came.wait())
            await asyncio.wait({*waited, came}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            came.cancel()
        for task in waited:
            task.cancel()
        await asyncio.gather(*waited, return_exceptions=True)
        if waited:
            log.warning("listeners_still_running", group=self._group, count=len(waited))

    def checked(self, answer: object) -> ConsumeStatus:
        """Return the status that a listener's answer means.

        None is success: a Python function that returns without an error has done its work. (Java treats null
        as failure.)

        Raises:
            TypeError: the answer is neither None nor a status of this kind of consumer.
        """
        if answer is None:
            return self.success
        if not isinstance(answer, type(self.success)):
            raise TypeError(f"the listener returned {answer!r}: want None or a {type(self.success).__name__}")
        return answer


def off_the_loop(
    listener: MessageQueueListener | None, threads: ThreadPoolExecutor
) -> MessageQueueListener | None:
    """Wrap a listener to run on a thread, since it may block; its errors are logged there."""
    check_queue_listener(listener)
    if listener is None:
        return None

    def notice(topic: str, all_queues: Collection[MessageQueue], mine: Collection[MessageQueue]) -> None:
        threads.submit(report_queues, listener, topic, all_queues, mine)

    return notice


def errors_off_the_loop(listener: ErrorListener | None, threads: ThreadPoolExecutor) -> ErrorListener | None:
    """Wrap an error listener to run on a thread, since it may block; its errors are logged there."""
    check_error_listener(listener)
    if listener is None:
        return None

    def notice(error: RocketMQError) -> None:
        threads.submit(report_error, listener, error)

    return notice


def report_queues(
    listener: MessageQueueListener,
    topic: str,
    all_queues: Collection[MessageQueue],
    mine: Collection[MessageQueue],
) -> None:
    """Call a user's queue listener; log an error."""
    try:
        listener(topic, all_queues, mine)
    except Exception as error:  # a user's callback: the consumer continues
        log.error("message_queue_listener_failed", topic=topic, reason=repr(error), exc_info=error)


def _no_listener(topic: str) -> LookupError:
    return LookupError(
        f"no listener for topic {topic!r}: its message failed at another member of the "
        "group; all members must subscribe to the same topics"
    )


def _is_being_cancelled() -> bool:
    """Return whether this task is being cancelled; if not, the listener raised the CancelledError itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


_STATUSES: dict[bool, tuple[ConsumeStatus, ConsumeStatus]] = {
    False: (ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER),
    True: (ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT),
}
