"""Sends of one request on the thread that waits for it: no crossing of threads."""

from asyncio import Future
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from rmqtools.aio import Producer
from rmqtools.engine.finish import finish
from rmqtools.engine.producer.send import queue_choice
from rmqtools.engine.producer.send_way import CallerWay
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendResult
from rmqtools.policy.selectors import MessageQueueSelector
from rmqtools.sync.greenlets import are_sockets_patched
from rmqtools.sync.loop import Bridge, note_blocking_call

T = TypeVar("T")

_CLOSE_GRACE = 1.0  # seconds


class CallerSends:
    """Sends for one producer. Safe to share between threads."""

    def __init__(self, producer: Producer, bridge: Bridge) -> None:
        self._producer = producer
        self._bridge = bridge
        self._way = CallerWay(producer._client.remoting, bridge)
        self._needs_loop = (
            producer._needs_loop or are_sockets_patched()
        )  # gevent's sockets have no poll of their own

    def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None,
        selector: MessageQueueSelector | None,
        arg: Any,
        timeout: float | None,
    ) -> SendResult:
        """See :meth:`rmqtools.Producer.send`. Traces, batches and users' selectors belong to the loop."""
        choice = queue_choice(queue, selector, arg)
        if selector is not None or self._needs_loop:
            return self._bridge.run(lambda: self._producer._send(message, choice, timeout))
        self._bridge.check()
        note_blocking_call()
        return _finish(lambda: self._producer._begin(message, choice, timeout, self._way))

    def send_batch(
        self, messages: Sequence[Message], *, queue: MessageQueue | None, timeout: float | None
    ) -> list[SendResult]:
        """See :meth:`rmqtools.Producer.send_batch`."""
        if self._needs_loop:
            return self._bridge.run(lambda: self._producer._send_batch(messages, queue, timeout))
        self._bridge.check()
        note_blocking_call()
        return _finish(lambda: self._producer._send_batch(messages, queue, timeout, self._way))

    def close(self) -> None:
        """After the client was closed: wait for threads that still hold one of its connections."""
        self._producer._client.remoting.pool.join(_CLOSE_GRACE)


def _finish(begin: Callable[[], Future[T] | Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that does not suspend. An interrupt before its first step leaves none behind."""
    sending: Any = None
    try:
        sending = begin()
        assert not isinstance(sending, Future)  # only messages that wait for others get one, on the loop
        result: T = finish(sending)
        return result
    finally:
        if sending is not None:
            sending.close()
