"""A pull consumer: fetches held queues in the background; ``poll`` hands out fetched messages.

Source of the rules: DefaultLitePullConsumerImpl, AssignedMessageQueue, RebalanceLitePullImpl (Java client).
Ours: a seek ends the running long poll at once; a paused queue hands out no messages, not even those fetched
before; pulls carry no offsets; a queue without a stored offset keeps its start offset from the first poll on;
closing commits what was handed out; unassigned queues and queues of unsubscribed topics are given up at once.
"""

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config.consumer import PullConsumerConfig
from rmqtools.engine.admin.masters import Masters
from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.consumer.fetch_policy import PollFetch
from rmqtools.engine.consumer.lifecycle import Lifecycle
from rmqtools.engine.consumer.listeners import MessageQueueListener, tell_queues
from rmqtools.engine.consumer.operator_requests import OperatorRequests
from rmqtools.engine.consumer.poll_buffer import HandOut
from rmqtools.engine.consumer.puller import Puller
from rmqtools.engine.consumer.start_offsets import StartOffsets
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.ownership import Ownership
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.errors import BrokerError, ClientStateError, ConfigError, DataLossError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import ConsumeType
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.start_offset import known_offset
from rmqtools.protocol.headers import OffsetResponseHeader, QueryConsumerOffsetRequestHeader, decode_header
from rmqtools.protocol.wire.command import request

LENT_MESSAGES = 256  # fetched messages that the blocking face hands out without the loop
_HOLD_PATIENCE = 10.0  # seconds to wait for the first round, or for a newly assigned queue


class PullCore:
    """The coroutines behind :class:`rmqtools.aio.PullConsumer`, which documents them."""

    def __init__(
        self,
        config: PullConsumerConfig,
        strategy: AllocateMessageQueueStrategy,
        *,
        message_queue_listener: MessageQueueListener | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._config = config
        self.keeps_last_poll = False  # closing does not commit what the last poll handed out
        self.member = member = Member(config, strategy, ConsumeType.CONSUME_ACTIVELY, clock=clock)
        self.client = member.client
        self._names, self._held, self._offsets = member.names, member.held, member.offsets
        self._queues = QueueAdmin(self.client)
        self._hand_out = HandOut()
        self._puller = Puller(member, PollFetch(member, self._hand_out))
        self.ownership = Ownership(
            member,
            start_offset=StartOffsets(member, self._queues).find,
            tell_queues=message_queue_listener and partial(tell_queues, message_queue_listener),
        )
        self._held_more = asyncio.Event()
        self._held.on_hold(self._puller.start)
        self._held.on_hold(lambda _: self._held_more.set())
        self._held.on_move(self._hand_out.replace)
        self._held.on_leave(self._note_leaving)
        self.client.refusals.listen(lambda _: self._hand_out.wake())
        self._next_commit = 0.0
        self._closing = False
        self._life = Lifecycle(
            member,
            self._join,
            self.ownership.stop,
            self._puller.close,
            self._note_all,
            self._held.close,
            member.membership.leave,
        )

    # lifecycle

    async def start(self) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.start`."""
        await self._life.start()

    async def close(self) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.close`."""
        self._closing = True
        self._hand_out.wake()
        await self._life.close()

    # subscriptions and assignment

    def subscribe(self, topic: str, *, tags: str = "*", sql: str | None = None) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.subscribe`."""
        if self.member.subscriptions.assigned is not None:
            raise ClientStateError(
                f"topic {topic!r}: queues are assigned; subscribe and assign exclude one another: "
                "use a second consumer"
            )
        self.member.subscriptions.want(topic, tags=tags, sql=sql)

    def unsubscribe(self, topic: str) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.unsubscribe`."""
        wire_topic = self._names.wire_topic(topic)
        self._held.begin_to_give_up([held for held in self._held.working() if held.queue.topic == wire_topic])
        self.member.subscriptions.want_no_more(wire_topic)

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.assign`."""
        if self.member.subscriptions:
            raise ClientStateError(
                f"topics {sorted(self.member.subscriptions)} are subscribed; subscribe and assign exclude "
                "one another: use a second consumer"
            )
        wanted = set(map(self._names.wire_queue, queues))
        self._held.keeps_offsets = True
        self._held.begin_to_give_up([held for held in self._held.working() if held.queue not in wanted])
        self.member.subscriptions.assign(wanted)

    async def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """See :meth:`rmqtools.aio.PullConsumer.fetch_queues`."""
        queues = await self._queues.fetch_subscribe_queues(self._names.wire_topic(topic))
        return [self._names.plain_queue(queue) for queue in queues]

    # messages

    async def poll(self, timeout: float | None = None, max_messages: int | None = None) -> list[MessageExt]:
        """See :meth:`rmqtools.aio.PullConsumer.poll`."""
        seconds, count = self._wanted(timeout, max_messages)
        self._begin_poll()
        began = self.client.clock.monotonic()
        deadline = began + seconds
        while not (taken := self._hand_out.take(count)) and not self._closing:
            self._raise_refusal()
            left = deadline - self.client.clock.monotonic()
            await self._hand_out.wait(max(left, 0))
            if left <= 0:
                break
        messages = [self._names.plain_message(message) for message in taken]
        if self.client.observer is not None and messages:
            waited = self.client.clock.monotonic() - began
            self.client.observer.received(messages, self.member.identity, seconds=waited)
        return messages

    async def poll_and_lend(self, timeout: float | None, max_messages: int | None) -> list[MessageExt]:
        """Poll, and make what else has arrived ready for :meth:`poll_lent`."""
        messages = await self.poll(timeout, max_messages)
        _, count = self._wanted(timeout, max_messages)
        if len(messages) == count <= LENT_MESSAGES // 4:  # else few calls would be saved
            self._hand_out.lend(count, ahead=LENT_MESSAGES)
        return messages

    def poll_lent(self, timeout: float | None, max_messages: int | None) -> list[MessageExt]:
        """Poll what an earlier :meth:`poll_and_lend` has made ready; [] : poll there. Safe on any thread."""
        _, count = self._wanted(timeout, max_messages)
        if self.client.observer is not None or self._is_commit_due():
            return []
        return [self._names.plain_message(message) for message in self._hand_out.next_poll(count)]

    async def next(self, *, ahead: int = 0) -> MessageExt | None:
        """The next message of an iteration; None: the consumer is closed.

        ``ahead``: how many messages to make ready for :meth:`next_lent`, at least; 0: one poll's.
        """
        message = self.next_lent()
        while message is None:
            if self._closing:
                return None
            self._begin_poll()
            if self._hand_out.lend(self._config.poll_batch_size, ahead=ahead):
                message = self._taken_from_lent()
            else:
                self._raise_refusal()
                await self._hand_out.wait(self._config.poll_timeout)
        return message

    def next_lent(self) -> MessageExt | None:
        """The next message of an iteration, if it is ready. Safe on any thread."""
        return None if self._is_commit_due() else self._taken_from_lent()

    @property
    def should_settle(self) -> bool:
        """Whether the loop should call :meth:`settle` soon. True once until then. Safe on any thread."""
        return self._hand_out.should_settle

    def settle(self) -> None:
        """Make room for more messages where ready ones were handed out."""
        self._hand_out.settle()

    def _taken_from_lent(self) -> MessageExt | None:
        message = self._hand_out.next()
        return None if message is None else self._names.plain_message(message)

    def pause(self, queues: Collection[MessageQueue]) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.pause`."""
        self._hand_out.recall()
        for held in self._find_all(queues):
            held.is_paused = True

    def resume(self, queues: Collection[MessageQueue]) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.resume`."""
        for held in self._find_all(queues):
            held.is_paused = False
            held.wake()
        self._hand_out.wake()

    # offsets

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.seek`."""
        await self._find(queue)
        low, high = await asyncio.gather(self.min_offset(queue), self.max_offset(queue))
        if not low <= offset <= high:
            raise DataLossError(f"cannot seek to offset {offset} of {queue}: the broker has [{low}, {high})")
        await self._seek(queue, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.seek_to_begin`."""
        await self._find(queue)
        await self._seek(queue, await self.min_offset(queue))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.seek_to_end`."""
        await self._find(queue)
        await self._seek(queue, await self.max_offset(queue))

    async def seek_to_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.seek_to_timestamp`."""
        await self._find(queue)
        await self._seek(queue, await self.search_offset(queue, timestamp_ms))

    async def position(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.PullConsumer.position`."""
        return self._hand_out.position(await self._find(queue))

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.commit`."""
        self.client.check_started()
        for queue, offset in (offsets or {}).items():
            await self._find(queue)
            if offset < 0:
                raise ConfigError(f"cannot commit offset {offset} of {queue}: want 0 or more")
        if offsets is None:
            found = {held.queue: self._hand_out.handed_out(held) for held in self._held.working()}
            await self._offsets.commit({queue: at for queue, at in found.items() if at is not None})
        else:
            await self._offsets.commit({self._names.wire_queue(queue): at for queue, at in offsets.items()})

    async def committed(self, queue: MessageQueue) -> int | None:
        """See :meth:`rmqtools.aio.PullConsumer.committed`."""
        self.client.check_started()
        wire = self._names.wire_queue(queue)
        if self._config.is_broadcasting:
            return self._offsets.read_memory(wire)
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=self.member.group,
            topic=wire.topic,
            queue_id=wire.queue_id,
            set_zero_if_not_found=False,
            bname=wire.broker_name,
        )
        try:
            answer = await Masters(self.client).invoke_for(wire, request(header))
        except BrokerError as error:
            if error.code != ResponseCode.QUERY_NOT_FOUND:
                raise
            return None
        return known_offset(decode_header(OffsetResponseHeader, answer.ext_fields).offset)

    async def min_offset(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.PullConsumer.min_offset`."""
        return await self._queues.min_offset(self._names.wire_queue(queue))

    async def max_offset(self, queue: MessageQueue) -> int:
        """See :meth:`rmqtools.aio.PullConsumer.max_offset`."""
        return await self._queues.max_offset(self._names.wire_queue(queue))

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """See :meth:`rmqtools.aio.PullConsumer.search_offset`."""
        return await self._queues.search_offset(self._names.wire_queue(queue), timestamp_ms)

    # internals

    async def _join(self) -> None:
        OperatorRequests(self.member).listen()
        await self.ownership.join()
        with contextlib.suppress(TimeoutError):  # rounds continue in the background
            async with asyncio.timeout(_HOLD_PATIENCE):
                await self.ownership.rounds.first()

    async def _find(self, queue: MessageQueue) -> ProcessQueue:
        """The held state of a queue; waits for one just assigned.

        Raises:
            ClientStateError: this member does not hold it.
        """
        self.client.check_started()
        wire, deadline = self._names.wire_queue(queue), self.client.clock.monotonic() + _HOLD_PATIENCE
        while (held := self._held.pulled.get(wire)) is None or held.is_dropped:
            left = deadline - self.client.clock.monotonic()
            if wire not in (self.member.subscriptions.assigned or ()) or left <= 0:
                raise ClientStateError(
                    f"{queue} is not held by {self.member.client_id} (now): it was never assigned, has gone "
                    "to another member, or its broker does not answer; see assignment()"
                )
            self._held_more.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._held_more.wait()
        return held

    def _raise_refusal(self) -> None:
        """Raise if a broker has begun to refuse this member since the last call."""
        if (error := self.client.refusals.take()) is not None:
            raise BrokerError(error.code, error.remark, error.addr) from error

    def _find_all(self, queues: Collection[MessageQueue]) -> list[ProcessQueue]:
        found = (self._held.pulled.get(self._names.wire_queue(queue)) for queue in queues)
        return [held for held in found if held is not None]

    def _begin_poll(self) -> None:
        self.client.check_started()
        if self.member.subscriptions.assigned is None and not self.member.subscriptions:
            raise ClientStateError(f"group {self._config.group!r} reads nothing: call subscribe or assign")
        self._hand_out.begin(self._held.working())
        if self._is_commit_due():
            self._next_commit = self.client.clock.monotonic() + self._config.auto_commit_interval
            self._note(self._held.working(), certain=True)
            self.client.spawn("auto_commit", self._offsets.persist(list(self._held.pulled)))

    def _is_commit_due(self) -> bool:
        return self._config.auto_commit and self.client.clock.monotonic() >= self._next_commit

    def _wanted(self, timeout: float | None, max_messages: int | None) -> tuple[float, int]:
        """The seconds and messages of a poll.

        Raises:
            ConfigError: a number is too small.
        """
        seconds = self._config.poll_timeout if timeout is None else timeout
        count = self._config.poll_batch_size if max_messages is None else max_messages
        if seconds < 0 or count < 1:
            raise ConfigError(f"poll(timeout={timeout}, max_messages={max_messages}): want >= 0 and >= 1")
        return seconds, count

    def _note(self, queues: Iterable[ProcessQueue], *, certain: bool) -> None:
        """Note how far queues are consumed; ``certain``: leave out what the last poll handed out."""
        for held in queues:
            offset = self._hand_out.consumed(held) if certain else self._hand_out.handed_out(held)
            if offset is not None:
                self._offsets.update(held.queue, offset)

    def _note_leaving(self, held: ProcessQueue) -> None:
        """Note a queue's offset at its release. Uncommitted messages of the last poll come again."""
        if self._config.auto_commit:
            self._note([held], certain=True)
        self._hand_out.forget(held)

    async def _note_all(self) -> None:
        """On close, note everything handed out as consumed, unless the user left because of an error."""
        self._hand_out.recall()
        for held in self._held.working():
            if self._config.auto_commit:
                self._note([held], certain=self.keeps_last_poll)
            self._hand_out.forget(held)

    async def _seek(self, queue: MessageQueue, offset: int) -> None:
        held = await self._find(queue)
        self._puller.stop(held)
        self._held.move(held, offset, note=False)
