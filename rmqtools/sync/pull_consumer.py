"""Blocking face of :mod:`rmqtools.aio.pull_consumer`."""

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

from rmqtools import aio
from rmqtools.config.consumer import PullConsumerConfig
from rmqtools.engine.connection.refusals import ErrorListener
from rmqtools.engine.consumer.listeners import MessageQueueListener, errors_off_the_loop, off_the_loop
from rmqtools.engine.consumer.pull_consumer import LENT_MESSAGES
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.sync.lifecycle import Blocking


class PullConsumer(Blocking):
    """Blocking face of :class:`rmqtools.aio.PullConsumer`. One thread polls, any may call the rest."""

    def __init__(
        self,
        config: PullConsumerConfig,
        *,
        strategy: AllocateMessageQueueStrategy | str | None = None,
        message_queue_listener: MessageQueueListener | None = None,
        error_listener: ErrorListener | None = None,
    ) -> None:
        """See :class:`rmqtools.aio.PullConsumer`.

        ``message_queue_listener`` and ``error_listener`` run on a thread and may block.
        """
        self._noticing = ThreadPoolExecutor(1, "rmqtools-queue-listener")
        self._consumer = aio.PullConsumer(
            config,
            strategy=strategy,
            message_queue_listener=off_the_loop(message_queue_listener, self._noticing),
            error_listener=errors_off_the_loop(error_listener, self._noticing),
        )
        super().__init__(self._consumer)

    @property
    def client_id(self) -> str:
        """See :attr:`rmqtools.aio.PullConsumer.client_id`."""
        return self._consumer.client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """See :attr:`rmqtools.aio.PullConsumer.queues`."""
        return self._consumer.queues

    def assignment(self) -> list[MessageQueue]:
        """See :meth:`rmqtools.aio.PullConsumer.assignment`."""
        return self._consumer.assignment()

    def subscribe(self, topic: str, *, tags: str = "*", sql: str | None = None) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.subscribe`."""
        self._bridge.call(lambda: self._consumer.subscribe(topic, tags=tags, sql=sql))

    def unsubscribe(self, topic: str) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.unsubscribe`."""
        self._bridge.call(lambda: self._consumer.unsubscribe(topic))

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.assign`."""
        self._bridge.call(lambda: self._consumer.assign(queues))

    def close(self) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.close`."""
        super().close()
        self._noticing.shutdown(wait=False, cancel_futures=True)

    def poll(self, timeout: float | None = None, max_messages: int | None = None) -> list[MessageExt]:
        """See :meth:`rmqtools.aio.PullConsumer.poll`."""
        self._bridge.check()
        core = self._consumer.core
        if messages := core.poll_lent(timeout, max_messages):
            self._settle_soon()
            return messages
        return self._bridge.run(core.poll_and_lend(timeout, max_messages))

    def __iter__(self) -> Iterator[MessageExt]:
        """See :meth:`rmqtools.aio.PullConsumer.__aiter__`; crosses threads once for many messages."""
        core = self._consumer.core
        while (message := core.next_lent() or self._bridge.run(core.next(ahead=LENT_MESSAGES))) is not None:
            self._settle_soon()
            yield message

    def _settle_soon(self) -> None:
        """Have messages handed out on this thread leave their queues, without waiting for it."""
        if self._consumer.core.should_settle:
            self._bridge.tell(self._consumer.core.settle)

    def pause(self, queues: Collection[MessageQueue]) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.pause`."""
        self._bridge.call(lambda: self._consumer.pause(queues))

    def resume(self, queues: Collection[MessageQueue]) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.resume`."""
        self._bridge.call(lambda: self._consumer.resume(queues))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.seek`."""
        self._bridge.run(self._consumer.seek(queue, offset))

    def seek_to_begin(self, queue: MessageQueue) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.seek_to_begin`."""
        self._bridge.run(self._consumer.seek_to_begin(queue))

    def seek_to_end(self, queue: MessageQueue) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.seek_to_end`."""
        self._bridge.run(self._consumer.seek_to_end(queue))

    def seek_to_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.seek_to_timestamp`."""
        self._bridge.run(self._consumer.seek_to_timestamp(queue, timestamp_ms))

    def position(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.PullConsumer.position`."""
        return self._bridge.run(self._consumer.position(queue))

    def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.commit`."""
        self._bridge.run(self._consumer.commit(offsets))

    def committed(self, queue: MessageQueue) -> int | None:
        """See :meth:`rmqtools.aio.PullConsumer.committed`."""
        return self._bridge.run(self._consumer.committed(queue))

    def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """See :meth:`rmqtools.aio.PullConsumer.fetch_queues`."""
        return self._bridge.run(self._consumer.fetch_queues(topic))

    def min_offset(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.PullConsumer.min_offset`."""
        return self._bridge.run(self._consumer.min_offset(queue))

    def max_offset(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.PullConsumer.max_offset`."""
        return self._bridge.run(self._consumer.max_offset(queue))

    def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """See :meth:`rmqtools.aio.PullConsumer.search_offset`."""
        return self._bridge.run(self._consumer.search_offset(queue, timestamp_ms))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.core.keeps_last_poll = kind is not None
        self.close()
