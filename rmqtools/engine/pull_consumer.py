"""A pull consumer: held queues are fetched in the background, ``poll`` hands out what is there.

Source of the rules: DefaultLitePullConsumerImpl (Java client). Ours: a seek ends the
long poll under way at once, a paused queue hands out nothing of what was fetched before, offsets never go
along with pulls, a queue without offset keeps the place it was begun at as soon as something is polled, and
closing commits what was handed out.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config_consumer import PullConsumerConfig
from rmqtools.engine.assigned_queues import AssignedQueues
from rmqtools.engine.hand_out import HandOut
from rmqtools.engine.listeners import MessageQueueListener
from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.errors import BrokerError, ClientStateError, ConfigError, DataLossError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import PullResult
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.flow import PullThresholds, exceeded_threshold
from rmqtools.protocol.command import request
from rmqtools.protocol.headers import OffsetResponseHeader, QueryConsumerOffsetRequestHeader, decode_header


class PullCore(AssignedQueues):
    """The coroutines behind :class:`rmqtools.aio.PullConsumer`, where they are described."""

    def __init__(
        self,
        config: PullConsumerConfig,
        strategy: AllocateMessageQueueStrategy,
        *,
        message_queue_listener: MessageQueueListener | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__(config, strategy, message_queue_listener=message_queue_listener, clock=clock)
        self.pull_config = config
        self.keeps_last_poll = False  # closing leaves out what the last poll handed out
        self._hand_out = HandOut()
        self._next_commit = 0.0
        self._closing = False

    # life

    async def close(self) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.close`."""
        self._closing = True
        self._hand_out.wake()
        await super().close()

    async def stop_consuming(self) -> None:
        """See :class:`ConsumerCore`."""
        self._hand_out.recall()
        if self.pull_config.auto_commit:
            self._note(self.table.values(), certain=self.keeps_last_poll)

    # messages

    async def poll(self, timeout: float | None = None, max_messages: int | None = None) -> list[MessageExt]:
        """See :meth:`rmqtools.aio.PullConsumer.poll`."""
        seconds = self.pull_config.poll_timeout if timeout is None else timeout
        count = self.pull_config.poll_batch_size if max_messages is None else max_messages
        if seconds < 0 or count < 1:
            raise ConfigError(f"poll(timeout={timeout}, max_messages={max_messages}): want >= 0 and >= 1")
        self._begin_poll()
        deadline = self.client.clock.monotonic() + seconds
        while not (taken := self._hand_out.take(count)) and not self._closing:
            left = deadline - self.client.clock.monotonic()
            await self._hand_out.wait(max(left, 0))
            if left <= 0:
                break
        return [self.plain_message(message) for message in taken]

    async def next(self) -> MessageExt | None:
        """The next message of an iteration; None: the consumer is closed."""
        while (message := self.next_lent()) is None:
            if self._closing:
                return None
            self._begin_poll()
            if not self._hand_out.lend(self.pull_config.poll_batch_size):
                await self._hand_out.wait(self.pull_config.poll_timeout)
        return message

    def next_lent(self) -> MessageExt | None:
        """The next message of an iteration if it is here already. Safe on any thread."""
        message = self._hand_out.next()
        return None if message is None else self.plain_message(message)

    def pause(self, queues: Collection[MessageQueue]) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.pause`."""
        self._hand_out.recall()
        for held in self._held_of(queues):
            held.is_paused = True

    def resume(self, queues: Collection[MessageQueue]) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.resume`."""
        for held in self._held_of(queues):
            held.is_paused = False
            held.wake()
        self._hand_out.wake()

    # offsets

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.seek`."""
        await self._held(queue)
        low, high = await asyncio.gather(self.min_offset(queue), self.max_offset(queue))
        if not low <= offset <= high:
            raise DataLossError(f"cannot seek to offset {offset} of {queue}: the broker has [{low}, {high})")
        await self._seek(queue, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.seek_to_begin`."""
        await self._held(queue)
        await self._seek(queue, await self.min_offset(queue))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.seek_to_end`."""
        await self._held(queue)
        await self._seek(queue, await self.max_offset(queue))

    async def seek_to_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.seek_to_timestamp`."""
        await self._held(queue)
        await self._seek(queue, await self.search_offset(queue, timestamp_ms))

    async def position(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.PullConsumer.position`."""
        return self._hand_out.position(await self._held(queue))

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.commit`."""
        self.client.check_started()
        for queue, offset in (offsets or {}).items():
            await self._held(queue)
            if offset < 0:
                raise ConfigError(f"cannot commit offset {offset} of {queue}: want 0 or more")
        if offsets is None:
            found = {held.queue: self._hand_out.handed_out(held) for held in self._working()}
            await self.offsets.commit({queue: at for queue, at in found.items() if at is not None})
        else:
            await self.offsets.commit({self.wire_queue(queue): at for queue, at in offsets.items()})

    async def committed(self, queue: MessageQueue) -> int | None:
        """See :meth:`rmqtools.aio.PullConsumer.committed`."""
        self.client.check_started()
        wire = self.wire_queue(queue)
        if self.config.is_broadcasting:
            return self.offsets.read_memory(wire)
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=self.group,
            topic=wire.topic,
            queue_id=wire.queue_id,
            set_zero_if_not_found=False,
            bname=wire.broker_name,
        )
        try:
            answer = await self._admin.ask_master(wire, request(header))
        except BrokerError as error:
            if error.code != ResponseCode.QUERY_NOT_FOUND:
                raise
            return None
        return decode_header(OffsetResponseHeader, answer.ext_fields).offset

    async def min_offset(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.PullConsumer.min_offset`."""
        return await self._admin.min_offset(self.wire_queue(queue))

    async def max_offset(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.PullConsumer.max_offset`."""
        return await self._admin.max_offset(self.wire_queue(queue))

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """See :meth:`rmqtools.aio.PullConsumer.search_offset`."""
        return await self._admin.search_offset(self.wire_queue(queue), timestamp_ms)

    # PullOwner: what fetching asks for

    def may_pull(self, held: ProcessQueue, *, coming: PullResult | None = None) -> bool:
        """See :class:`PullOwner`."""
        limits = PullThresholds(
            max_count=self.config.pull_threshold_for_queue,
            max_size_bytes=self.config.pull_threshold_bytes_for_queue,
            max_span=None,
        )
        return not held.is_paused and exceeded_threshold(held.cached(coming), limits) is None

    def take(self, held: ProcessQueue, messages: list[MessageExt]) -> None:
        """See :class:`PullOwner`."""
        self._hand_out.arrived(held)

    def offset_for_pull(self, queue: MessageQueue) -> int | None:
        """None: an offset is stored when it is committed, and only then."""
        return None

    def passed_over(self, held: ProcessQueue) -> None:
        """Nothing: :meth:`position` looks at the queue."""

    def restart(self, held: ProcessQueue, offset: int) -> None:
        """See :class:`PullOwner`."""
        super().restart(held, offset)
        self._hand_out.replace(held, self.table[held.queue])

    # the rest

    def _begin_poll(self) -> None:
        self.client.check_started()
        if not self.is_assigned and not self.subscriptions:
            raise ClientStateError(f"group {self.config.group!r} reads nothing: call subscribe or assign")
        self._hand_out.begin(self.table.values())
        now = self.client.clock.monotonic()
        if self.pull_config.auto_commit and now >= self._next_commit:
            self._next_commit = now + self.pull_config.auto_commit_interval
            self._note(self._working(), certain=True)
            self.client.spawn("auto_commit", self.offsets.persist(list(self.table)))

    def _note(self, queues: Iterable[ProcessQueue], *, certain: bool) -> None:
        """Note how far queues are consumed; ``certain``: without what the last poll handed out."""
        for held in queues:
            offset = self._hand_out.consumed(held) if certain else self._hand_out.handed_out(held)
            if offset is not None:
                self.offsets.update(held.queue, offset)

    def given_up(self, held: ProcessQueue) -> None:
        """See :class:`AssignedQueues`. What the last poll handed out comes again, unless it was committed."""
        if self.pull_config.auto_commit:
            self._note([held], certain=True)
        self._hand_out.forget(held)

    async def _seek(self, queue: MessageQueue, offset: int) -> None:
        held = await self._held(queue)
        held.drop()
        self._puller.stop(held)
        fresh = self.begin(held.queue, offset)
        fresh.take_over(held)
        self.table[held.queue] = fresh
        self._hand_out.replace(held, fresh)
        self.work_on(fresh)
