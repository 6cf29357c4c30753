"""Queues that are shared with the other members of a group in rounds, or assigned by the consumer's user.

Source of the rules: DefaultLitePullConsumerImpl.subscribe, assign, AssignedMessageQueue,
RebalanceLitePullImpl (Java client). Ours: queues that are assigned no more, or whose topic is unsubscribed,
are given up at once.
"""

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import Collection, Iterable
from itertools import chain

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config_consumer import ConsumerConfig
from rmqtools.engine.consumer import ConsumerCore
from rmqtools.engine.listeners import MessageQueueListener
from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.engine.rebalance import Rebalance
from rmqtools.errors import ClientStateError
from rmqtools.model.group import ConsumeType
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy

_HOLD_PATIENCE = 10.0  # seconds that the first round, and a queue just assigned, is waited for


class _AssignedRebalance(Rebalance):
    """Rounds that leave assigned queues with the member they are assigned to."""

    def __init__(self, owner: "AssignedQueues") -> None:
        super().__init__(owner, group=owner.group, client_id=owner.client.client_id, table=owner.table)
        self._owner = owner

    def _ask(
        self,
        strategy: AllocateMessageQueueStrategy,
        topic: str,
        queues: Collection[MessageQueue],
        members: Collection[str],
    ) -> Collection[MessageQueue] | None:
        return queues if self._owner.is_assigned else super()._ask(strategy, topic, queues, members)


class AssignedQueues(ConsumerCore):
    """A member of a group that subscribes, or reads assigned queues."""

    consume_type = ConsumeType.CONSUME_ACTIVELY

    def __init__(
        self,
        config: ConsumerConfig,
        strategy: AllocateMessageQueueStrategy,
        *,
        message_queue_listener: MessageQueueListener | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__(config, strategy, message_queue_listener=message_queue_listener, clock=clock)
        self._assigned: frozenset[MessageQueue] | None = None  # None: queues are shared, not assigned
        self._leaving: list[list[MessageQueue]] = []  # given up, and their offsets not stored yet
        self._held_more = asyncio.Event()

    @abstractmethod
    def given_up(self, held: ProcessQueue) -> None:
        """Note, for the store, how far a queue is consumed that was just dropped."""

    async def start(self) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.start`."""
        await super().start()
        with contextlib.suppress(TimeoutError):  # rounds go on; nothing is handed out before
            async with asyncio.timeout(_HOLD_PATIENCE):
                await self.rounds.first()

    # what to read

    @property
    def is_assigned(self) -> bool:
        """Whether queues are assigned, not shared."""
        return self._assigned is not None

    def subscribe(self, topic: str, *, tags: str = "*", sql: str | None = None) -> str:
        """See :meth:`rmqtools.aio.PullConsumer.subscribe`."""
        if self._assigned is not None:
            raise ClientStateError(
                f"topic {topic!r}: queues are assigned; subscribe and assign exclude one another: "
                "use a second consumer"
            )
        return super().subscribe(topic, tags=tags, sql=sql)

    def unsubscribe(self, topic: str) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.unsubscribe`."""
        wire_topic = self.client.wire_topic(topic)
        self._give_up([held for queue, held in self.table.items() if queue.topic == wire_topic])
        super().unsubscribe(topic)

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """See :meth:`rmqtools.aio.PullConsumer.assign`."""
        if self.subscriptions:
            raise ClientStateError(
                f"topics {sorted(self.subscriptions)} are subscribed; subscribe and assign exclude one "
                "another: use a second consumer"
            )
        self._assigned = frozenset(map(self.wire_queue, queues))
        self._give_up([held for queue, held in self.table.items() if queue not in self._assigned])
        if self.client.is_open:
            self.client.spawn("assign", self._send_subscriptions())

    async def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """See :meth:`rmqtools.aio.PullConsumer.fetch_queues`."""
        queues = await self._admin.fetch_subscribe_queues(self.client.wire_topic(topic))
        return [self.plain_queue(queue) for queue in queues]

    # QueueHolder: what rounds ask for

    def subscribed_topics(self) -> Iterable[str]:
        """See :class:`QueueHolder`."""
        if self._assigned is None:
            return super().subscribed_topics()
        return sorted({queue.topic for queue in self._assigned})

    async def find_queues(self, topic: str) -> Collection[MessageQueue] | None:
        """See :class:`QueueHolder`."""
        if self._assigned is None:
            return await super().find_queues(topic)
        return [queue for queue in self._assigned if queue.topic == topic]

    async def find_members(self, topic: str) -> Collection[str] | None:
        """See :class:`QueueHolder`."""
        return await super().find_members(topic) if self._assigned is None else (self.client.client_id,)

    async def release(self, held: ProcessQueue) -> bool:
        """See :class:`QueueHolder`. What the last poll handed out comes again, unless it was committed."""
        self.given_up(held)
        return await super().release(held)

    def forget_offset(self, queue: MessageQueue) -> None:
        """See :class:`QueueHolder`. Assigned queues are nobody else's: what is noted of them is true."""
        if self._assigned is None:
            super().forget_offset(queue)

    async def read_committed(self, queue: MessageQueue) -> int | None:
        """See :class:`ConsumerCore`: first what is noted here, then the store."""
        noted = self.offsets.read_memory(queue)
        return await super().read_committed(queue) if noted is None else noted

    def work_on(self, held: ProcessQueue) -> None:
        """See :class:`QueueHolder`. A round may bring what is not wanted any more since it began."""
        if self._is_wanted(held.queue):
            super().work_on(held)
        else:
            held.drop()
            del self.table[held.queue]
        self._held_more.set()

    # the rest

    def owed_queues(self) -> Collection[MessageQueue]:
        """See :class:`ConsumerCore`. Also those whose giving up was cut off."""
        return {*self.table, *chain.from_iterable(self._leaving)}

    def _make_rebalance(self) -> Rebalance:
        return _AssignedRebalance(self)

    def _is_wanted(self, queue: MessageQueue) -> bool:
        return queue.topic in self.subscriptions if self._assigned is None else queue in self._assigned

    def _give_up(self, doomed: Collection[ProcessQueue]) -> None:
        """Hold queues no more from now on; the next round may take them again."""
        for held in doomed:
            held.drop()
            del self.table[held.queue]
            self.given_up(held)
        if doomed:
            self._leaving.append([held.queue for held in doomed])
            self.client.spawn("give_up", self._store_given_up(self._leaving[-1]))

    async def _store_given_up(self, queues: list[MessageQueue]) -> None:
        await self.offsets.persist(queues)
        self._leaving.remove(queues)

    async def _held(self, queue: MessageQueue) -> ProcessQueue:
        """A queue that this member holds; one just assigned is waited for.

        Raises:
            ClientStateError: it does not hold it.
        """
        self.client.check_started()
        wire, deadline = self.wire_queue(queue), self.client.clock.monotonic() + _HOLD_PATIENCE
        while (held := self.table.get(wire)) is None or held.is_dropped:
            left = deadline - self.client.clock.monotonic()
            if wire not in (self._assigned or ()) or left <= 0:
                raise ClientStateError(
                    f"{queue} is not held by {self.client.client_id} (now): it was never assigned, has gone "
                    "to another member, or its broker does not answer; see assignment()"
                )
            self._held_more.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._held_more.wait()
        return held

    def _held_of(self, queues: Collection[MessageQueue]) -> list[ProcessQueue]:
        found = (self.table.get(self.wire_queue(queue)) for queue in queues)
        return [held for held in found if held is not None]

    def _working(self) -> list[ProcessQueue]:
        return [held for held in self.table.values() if not held.is_dropped]
