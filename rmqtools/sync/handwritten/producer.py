"""The base class of the blocking producer: the ways of its sends.

A send of one request runs on the thread that waits for it, without crossing threads. ``send_async`` and the
encoded messages of ``rmqtools.arrow`` cross to the loop.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from rmqtools import aio
from rmqtools.config import ProducerConfig
from rmqtools.engine.finish import finish
from rmqtools.engine.producer.send import queue_choice
from rmqtools.engine.producer.send_many import BatchSeries, ManySender
from rmqtools.engine.producer.send_way import CallerWay
from rmqtools.errors import SendError
from rmqtools.model.encoded_batch import EncodedBatch, MsgIds, StoredBatch
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendResult
from rmqtools.policy.selectors import MessageQueueSelector
from rmqtools.sync.future_sends import FutureSends
from rmqtools.sync.greenlets import are_sockets_patched
from rmqtools.sync.lifecycle import Blocking
from rmqtools.sync.loop import Bridge, note_blocking_call

T = TypeVar("T")

_CLOSE_GRACE = 1.0  # seconds


class EncodedSender:
    """Sends encoded messages of ``rmqtools.arrow`` through a blocking producer's connections."""

    def __init__(self, sends: ManySender, bridge: Bridge) -> None:
        self._sends = sends
        self._bridge = bridge

    def new_series(self) -> BatchSeries:
        """See :meth:`ManySender.new_series`."""
        return self._sends.new_series()

    def send_encoded_async(
        self,
        batches: Sequence[EncodedBatch],
        *,
        series: BatchSeries | None = None,
        timeout: float | None = None,
    ) -> Future[list[StoredBatch | SendError]]:
        """See :meth:`ManySender.send_encoded`; the future gives the results or raises the error."""
        return self._bridge.submit(lambda: self._sends.send_encoded(batches, series=series, timeout=timeout))

    def reserve_msg_ids(self, count: int) -> MsgIds:
        """See :meth:`ManySender.reserve_msg_ids`."""
        return self._bridge.run(lambda: self._sends.reserve_msg_ids(count))


class CallerSends:
    """Sends of one producer on the thread that waits. Safe to share between threads."""

    def __init__(self, producer: aio.Producer, bridge: Bridge) -> None:
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


def _finish(begin: Callable[[], asyncio.Future[T] | Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that does not suspend. An interrupt before its first step leaves none behind."""
    sending: Any = None
    try:
        sending = begin()
        assert not isinstance(sending, asyncio.Future)  # those are of messages that wait for others
        result: T = finish(sending)
        return result
    finally:
        if sending is not None:
            sending.close()


class BlockingProducer(Blocking):
    """A blocking producer without the methods of one line."""

    def __init__(self, config: ProducerConfig) -> None:
        self._serve(aio.Producer(config))

    def _serve(self, producer: aio.Producer) -> None:
        self._producer = producer
        super().__init__(producer)
        self._sends = CallerSends(producer, self._bridge)
        self._future_sends = FutureSends(producer, self._bridge)

    @property
    def _encoded_sends(self) -> EncodedSender:
        """For ``rmqtools.arrow``, which encodes rows itself."""
        return EncodedSender(self._producer._many, self._bridge)

    def close(self) -> None:
        """Close the producer, and wait for threads that still use its connections."""
        super().close()
        self._sends.close()

    def send_async(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        arg: Any = None,
        timeout: float | None = None,
    ) -> Future[SendResult]:
        """Like :meth:`send`, without waiting: the future gives the result or raises the error.

        Calls reach the loop in their order. Cancelling the future ends the send: what was not written yet is
        not sent. With ``enable_backpressure_for_async_mode`` the call waits for room, within its timeout; if
        none comes, the future raises BackPressureError.
        """
        return self._future_sends.send(message, queue=queue, selector=selector, arg=arg, timeout=timeout)
