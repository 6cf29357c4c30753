"""Sends of one request on the thread that waits for it: no crossing of threads."""

from collections.abc import Sequence

from rmqtools.engine.producer.producer import ProducerCore
from rmqtools.engine.producer.send import QueueChoice
from rmqtools.engine.producer.send_way import CallerWay, finish
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendResult
from rmqtools.sync.loop import Bridge

_CLOSE_GRACE = 1.0  # seconds


class CallerSends:
    """Sends for one producer. Safe to share between threads."""

    def __init__(self, core: ProducerCore, bridge: Bridge) -> None:
        self._core = core
        self._bridge = bridge
        self._way = CallerWay(core.client.remoting, bridge)

    def send(self, message: Message, choice: QueueChoice, timeout: float | None) -> SendResult:
        """See :meth:`ProducerCore.send`. Traces, batches and users' selectors belong to the loop."""
        if choice.selector is not None or self._core.needs_loop:
            return self._bridge.run(self._core.send(message, choice=choice, timeout=timeout))
        self._bridge.check()
        return finish(self._core.send(message, choice=choice, timeout=timeout, way=self._way))

    def send_batch(
        self, messages: Sequence[Message], queue: MessageQueue | None, timeout: float | None
    ) -> list[SendResult]:
        """See :meth:`ProducerCore.send_batch`."""
        if self._core.needs_loop:
            return self._bridge.run(self._core.send_batch(messages, queue=queue, timeout=timeout))
        self._bridge.check()
        return finish(self._core.send_batch(messages, queue=queue, timeout=timeout, way=self._way))

    def close(self) -> None:
        """After the client was closed: wait for threads that still hold one of its connections."""
        self._core.client.remoting.pool.join(_CLOSE_GRACE)
