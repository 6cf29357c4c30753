"""Automatic batches (``linger``): single sends of plain messages share requests, each with its own result.

Messages wait in a line: one per topic, and one per queue that callers have chosen. A line's next request
takes as many waiting messages as fit. It leaves at the end of the loop iteration in which one of these holds:

- no request of the line is on the wire;
- ``batch_bytes`` are waiting, or the first message has waited for ``linger`` seconds, and a queue is idle.

A queue has one request of a line on the wire at a time, so messages of a line stay in order within a queue,
except for requests that were retried.
Source of the rule: ProduceAccumulator (Java client). Ours: a request leaves at once while none is on the
wire; messages have their own timeouts; order within a queue.

- The accumulator starts requests at the end of a loop iteration, after the callers that the last answer has
  woken: otherwise the first of them would leave alone, and the others would wait for it.
- Callers of one request get copies of its error: an error that is raised twice collects the tracebacks of
  both.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field
from functools import partial

from rmqtools.clock import Clock
from rmqtools.config import ProducerConfig
from rmqtools.engine.connection.background import Background
from rmqtools.engine.producer.encode_send import FRAMING_BYTES, Encoder, Outgoing, content_bytes
from rmqtools.engine.producer.send import ANY_QUEUE, QueueChoice, Sender, Sending
from rmqtools.errors import BrokerError, RocketMQError, SendError, UnknownOutcomeError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.frozen import maker_of
from rmqtools.model.message import Message, body_length
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.model.reply import ReplyMessage
from rmqtools.model.result import SendAttempt, SendResult
from rmqtools.number_of import number_of

_GRACE = 0.1  # seconds after its timeout in which a caller may still get the outcome of its request
_CLOSED = "the producer was closed: nothing was sent"
_NOT_KNOWN = MessageQueue("", "", -1)  # the queue of a request that waits for the route


@dataclass(slots=True, eq=False)
class _WaitingMessage:
    """A message and its caller's future. ``size``: its bytes in a batch; ``batch_bytes``: it stays alone."""

    message: Message
    size: int
    since: float
    deadline: float
    future: asyncio.Future[SendResult]


_entry = maker_of(_WaitingMessage)


@dataclass(slots=True, eq=False)
class _SharedRequest:
    """A request on the wire, and its attempts that have ended."""

    entries: list[_WaitingMessage]
    attempts: list[SendAttempt] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Line:
    """Messages of one topic, or of one queue if ``queue`` is given, in order of arrival."""

    topic: str
    queue: MessageQueue | None
    waiting: deque[_WaitingMessage] = field(default_factory=deque)
    waiting_bytes: int = 0
    on_wire: dict[MessageQueue, _SharedRequest] = field(default_factory=dict)
    is_called: bool = False  # :meth:`ProduceAccumulator._go` runs at the end of this loop iteration
    timer: asyncio.TimerHandle | None = None

    def take(self, batch_bytes: int) -> list[_WaitingMessage]:
        """Remove the messages of the next request; those whose callers have given up are dropped."""
        taken: list[_WaitingMessage] = []
        total = dropped = 0
        while self.waiting:
            entry = self.waiting.popleft()
            size = entry.size
            if entry.future.done():
                dropped += size
                continue
            if taken and total + size > batch_bytes:
                self.waiting.appendleft(entry)
                break
            total += size
            taken.append(entry)
        self.waiting_bytes -= total + dropped
        return taken

    def put_back(self, entries: list[_WaitingMessage], batch_bytes: int) -> None:
        """Let messages leave before all waiting ones, each in a request of its own."""
        for entry in reversed(entries):
            entry.size = batch_bytes
            self.waiting.appendleft(entry)
            self.waiting_bytes += batch_bytes


class ProduceAccumulator:
    """The lines of one producer. Used on its event loop only."""

    def __init__(self, sender: Sender, encoder: Encoder, config: ProducerConfig, clock: Clock) -> None:
        self._sender = sender
        self._encoder = encoder
        self._config = config
        self._now = clock.monotonic
        self._limit = config.batch_bytes
        self._compress_over = math.inf if config.compression == "none" else config.compress_over_bytes
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lines: dict[MessageQueue | str, _Line] = {}
        self._selecting = asyncio.Lock()
        self._requests = Background()
        self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = math.inf

    def send(
        self, message: Message, choice: QueueChoice, timeout: float | None, size: int | None = None
    ) -> Sending | None:
        """Send a message; results and errors are those of a single send. None: it must be sent singly.

        ``size``: what ``check_message`` has returned.

        A message that cannot share a request because it is compressed, or too large, joins the line of its
        queue, to keep its order, but not the line of a topic. A message whose time is over before it is in a
        request gets a SendError, one in a request an UnknownOutcomeError.
        """
        if size is None:
            if message.is_alone or isinstance(message, ReplyMessage):
                return None
            size = content_bytes(message)
        if message.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return None
        is_large = size >= self._compress_over and body_length(message.body) >= self._compress_over
        size += FRAMING_BYTES
        if is_large or size >= self._limit:
            if choice.is_free:
                return None
            size = self._limit
        since = self._now()
        deadline = since + (self._config.send_timeout if timeout is None else timeout)
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        entry = _entry(message, size, since, deadline, self._loop.create_future())
        if choice.selector is None:
            return self._join(entry, choice.queue)
        return self._select_and_join(entry, choice)

    async def close(self) -> None:
        """Send what waits. What is not over after ``send_timeout`` is ended: not sent, or unknown."""
        try:
            async with asyncio.timeout(self._config.send_timeout):
                while any(line.waiting or line.on_wire for line in self._lines.values()):
                    for line in self._lines.values():
                        self._go(line)
                    await self._requests.join()
        except TimeoutError:
            for line in self._lines.values():
                _fail_each(line.waiting, SendError(_CLOSED))
                line.waiting.clear()
        self._is_closed = True
        await self._requests.stop()
        for timer in [self._timer, *(line.timer for line in self._lines.values())]:
            if timer is not None:
                timer.cancel()

    async def _select_and_join(self, entry: _WaitingMessage, choice: QueueChoice) -> SendResult:
        message = entry.message
        async with self._selecting:  # in order of arrival, even while the route is fetched
            info = await self._sender.find(message.topic, entry.deadline)
        queue = choice.of(info.queues, message)
        if self._is_closed:
            raise SendError(_CLOSED)
        return await self._join(entry, queue)

    def _join(self, entry: _WaitingMessage, queue: MessageQueue | None) -> asyncio.Future[SendResult]:
        key = queue or entry.message.topic
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(entry.message.topic, queue)
        line.waiting.append(entry)
        line.waiting_bytes += entry.size
        if entry.deadline < self._timer_due:
            self._watch(entry.deadline)
        if not line.is_called:
            self._call(line)
        return entry.future

    def _call(self, line: _Line) -> None:
        """Schedule the look for the next requests of this line for the end of this loop iteration."""
        assert self._loop is not None
        line.is_called = True
        self._loop.call_soon(self._go, line)

    def _go(self, line: _Line) -> None:
        """Start the requests of a line that may leave now."""
        line.is_called = False
        while self._is_due(line) and (queue := self._idle_queue(line)) is not None:
            if entries := line.take(self._limit):
                request = line.on_wire[queue] = _SharedRequest(entries)
                task = self._requests.spawn("accumulated_send", self._place(line, request, queue))
                task.add_done_callback(partial(self._ended, line, queue))
        if line.waiting and line.timer is None and not self._is_due(line):
            assert self._loop is not None
            left = line.waiting[0].since + self._config.linger - self._now()
            line.timer = self._loop.call_later(max(0.0, left), self._linger_over, line)

    def _linger_over(self, line: _Line) -> None:
        line.timer = None
        self._go(line)

    def _is_due(self, line: _Line) -> bool:
        if not line.waiting:
            return False
        return (
            not line.on_wire
            or line.waiting_bytes >= self._limit
            or self._now() >= line.waiting[0].since + self._config.linger
        )

    def _idle_queue(self, line: _Line) -> MessageQueue | None:
        """Return the queue of the line's next request; None: it must wait for a request on the wire."""
        if line.queue is not None:
            return None if line.on_wire else line.queue
        if _NOT_KNOWN in line.on_wire:
            return None
        queue = self._sender.idle_queue(line.topic, line.on_wire)
        return _NOT_KNOWN if queue is None and not line.on_wire else queue

    def _ended(self, line: _Line, queue: MessageQueue, _: asyncio.Task[None]) -> None:
        """Free the queue, and fail its callers: closing has cancelled the task before it began."""
        _fail_each(line.on_wire.pop(queue).entries, SendError(_CLOSED))
        self._call(line)

    async def _place(self, line: _Line, request: _SharedRequest, queue: MessageQueue) -> None:
        """Send one request and tell each of its callers."""
        entries = request.entries
        try:
            placed, attempts = await self._sender.place(
                self._encode(entries),
                choice=ANY_QUEUE if line.queue is None else QueueChoice(line.queue),
                first=queue if line.queue is None and queue is not _NOT_KNOWN else None,
                timeout=max(entry.deadline for entry in entries) - self._now(),
                attempts=request.attempts,
            )
            for entry, result in zip(entries, placed.results(attempts), strict=True):
                if not entry.future.done():
                    entry.future.set_result(result)
        except RocketMQError as error:
            if len(entries) > 1 and _refuses_content(error):
                request.entries = []
                line.put_back(entries, self._limit)
            else:
                _fail_each(entries, error)
        except BaseException as error:  # cancelled by closing, or a defect
            _fail_each(entries, UnknownOutcomeError(f"its request ended early: {error!r}", request.attempts))
            raise

    def _encode(self, entries: list[_WaitingMessage]) -> Outgoing:
        if len(entries) == 1:
            return self._encoder.encode(entries[0].message)
        return self._encoder.encode_batch([entry.message for entry in entries])

    def _watch(self, due: float) -> None:
        """Have :meth:`_expire` run at ``due``, earlier than before. One timer serves all messages."""
        assert self._loop is not None
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._loop.call_later(max(0.0, due - self._now()), self._expire)

    def _expire(self) -> None:
        """Tell the callers whose time is over, and wait for the next one's end."""
        now, due = self._now(), math.inf
        for line in self._lines.values():
            due = min(due, _fail_overdue(line.waiting, now, _not_sent))
            for request in line.on_wire.values():
                unknown = partial(_unknown, request)
                due = min(due, _fail_overdue(request.entries, now - _GRACE, unknown) + _GRACE)
        self._timer, self._timer_due = None, math.inf
        if due < math.inf:
            self._watch(due)


def _fail_overdue(entries: Iterable[_WaitingMessage], now: float, error: Callable[[], SendError]) -> float:
    """Tell the callers whose deadline has passed; return the earliest deadline of the others."""
    due = math.inf
    for entry in entries:
        if entry.future.done():
            continue
        if entry.deadline <= now:
            entry.future.set_exception(error())
        else:
            due = min(due, entry.deadline)
    return due


def _not_sent() -> SendError:
    return SendError("it was in no request when its time was over: nothing was sent")


def _unknown(request: _SharedRequest) -> UnknownOutcomeError:
    what = f"{number_of(len(request.entries), 'message')} for topic {request.entries[0].message.topic!r}"
    return UnknownOutcomeError(f"{what} may or may not be stored", request.attempts)


def _fail_each(entries: Iterable[_WaitingMessage], error: RocketMQError) -> None:
    """Give every caller that still waits an error of its own: each raises it with its own traceback."""
    for entry in entries:
        if not entry.future.done():
            own = copy(error)
            own.__cause__ = error.__cause__
            entry.future.set_exception(own)


def _refuses_content(error: RocketMQError) -> bool:
    """Return whether a broker refused a batch, perhaps for one of its messages, and certainly stored none."""
    cause = error.__cause__
    if type(error) is not SendError or not isinstance(cause, BrokerError):
        return False
    return cause.code == ResponseCode.MESSAGE_ILLEGAL
