"""Blocking face of :mod:`rmqtools.aio.producer`."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from rmqtools import aio
from rmqtools.config import ProducerConfig
from rmqtools.engine.producer.send import queue_choice
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import BrokerHealth, SendResult
from rmqtools.policy.selectors import MessageQueueSelector
from rmqtools.sync.caller_send import CallerSends
from rmqtools.sync.future_sends import FutureSends
from rmqtools.sync.lifecycle import Blocking
from rmqtools.sync.parcels import ParcelSender


class Producer(Blocking):
    """Blocking face of :class:`rmqtools.aio.Producer`; safe to share between threads."""

    def __init__(self, config: ProducerConfig) -> None:
        self._serve(aio.Producer(config))

    def _serve(self, producer: aio.Producer) -> None:
        self._producer = producer
        super().__init__(producer)
        self._sends = CallerSends(producer._core, self._bridge)
        self._future_sends = FutureSends(producer._core, self._bridge)

    def close(self) -> None:
        """See :meth:`rmqtools.aio.Producer.close`. Sends under way on other threads end with an error.

        With ``linger`` they are completed, see :meth:`rmqtools.aio.Producer.close`.
        """
        super().close()
        self._sends.close()

    @property
    def config(self) -> ProducerConfig:
        """See :attr:`rmqtools.aio.Producer.config`."""
        return self._producer.config

    @property
    def _parcels(self) -> ParcelSender:
        """For ``rmqtools.arrow``, which encodes rows itself."""
        return ParcelSender(self._producer._core, self._bridge)

    @property
    def client_id(self) -> str:
        """See :attr:`rmqtools.aio.Producer.client_id`."""
        return self._producer.client_id

    def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        arg: Any = None,
        timeout: float | None = None,
    ) -> SendResult:
        """See :meth:`rmqtools.aio.Producer.send`. A selector runs on the loop thread: it must not block."""
        return self._sends.send(message, queue_choice(queue, selector, arg), timeout)

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
        not sent.
        """
        return self._future_sends.send(message, queue=queue, selector=selector, arg=arg, timeout=timeout)

    def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        arg: Any = None,
    ) -> None:
        """See :meth:`rmqtools.aio.Producer.send_oneway`."""
        self._bridge.run(self._producer.send_oneway(message, queue=queue, selector=selector, arg=arg))

    def send_orderly(self, message: Message, *, timeout: float | None = None) -> SendResult:
        """See :meth:`rmqtools.aio.Producer.send_orderly`."""
        return self._bridge.run(self._producer.send_orderly(message, timeout=timeout))

    def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        timeout: float | None = None,
    ) -> list[SendResult]:
        """See :meth:`rmqtools.aio.Producer.send_batch`."""
        return self._sends.send_batch(messages, queue, timeout)

    def send_many(self, messages: Sequence[Message], *, timeout: float | None = None) -> list[SendResult]:
        """See :meth:`rmqtools.aio.Producer.send_many`."""
        return self._bridge.run(self._producer.send_many(messages, timeout=timeout))

    def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """See :meth:`rmqtools.aio.Producer.fetch_publish_queues`."""
        return self._bridge.run(self._producer.fetch_publish_queues(topic))

    def request(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        arg: Any = None,
        timeout: float | None = None,
    ) -> MessageExt:
        """See :meth:`rmqtools.aio.Producer.request`."""
        return self._bridge.run(
            self._producer.request(message, queue=queue, selector=selector, arg=arg, timeout=timeout)
        )

    def recall(self, topic: str, recall_handle: str) -> str:
        """See :meth:`rmqtools.aio.Producer.recall`."""
        return self._bridge.run(self._producer.recall(topic, recall_handle))

    def broker_health(self) -> Mapping[str, BrokerHealth]:
        """See :meth:`rmqtools.aio.Producer.broker_health`."""
        return self._producer.broker_health()
