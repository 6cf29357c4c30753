"""The base class of the blocking producer: the ways of its sends."""

from concurrent.futures import Future
from typing import Any

from rmqtools import aio
from rmqtools.config import ProducerConfig
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendResult
from rmqtools.policy.selectors import MessageQueueSelector
from rmqtools.sync.caller_send import CallerSends
from rmqtools.sync.future_sends import FutureSends
from rmqtools.sync.lifecycle import Blocking
from rmqtools.sync.parcels import ParcelSender


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
    def _parcels(self) -> ParcelSender:
        """For ``rmqtools.arrow``, which encodes rows itself."""
        return ParcelSender(self._producer._parcels, self._bridge)

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
