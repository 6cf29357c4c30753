"""The queues that a member holds: takes, moves, gives up and closes them, all in one place.

A queue is always given up in one order: stop handing out messages, wait for the running listener (orderly
only), note how far the queue is consumed, persist that offset, remove it from memory, unlock the queue. Until
then the queue stays in the table, dropped, and cannot be taken again.
Source of the rules: RebalancePushImpl.removeUnnecessaryMessageQueue and tryRemoveOrderMessageQueue (Java
client).
"""

import asyncio
from collections.abc import Callable, Collection
from typing import TypeVar

from rmqtools.clock import Clock
from rmqtools.engine.connection.background import Background
from rmqtools.engine.group.held_queue import HeldQueue
from rmqtools.engine.group.offset_store import OffsetStore
from rmqtools.engine.group.pop_process_queue import PopProcessQueue
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.engine.group.queue_locks import QueueLocks
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.flow import CachedByMember

H = TypeVar("H", bound=HeldQueue)

_PATIENCE = 0.5  # seconds to wait for an orderly listener to end; upstream tryRemoveOrderMessageQueue


class QueueTable(dict[MessageQueue, H]):
    """Held queues, and an index by topic, so that a round looks at a topic's queues only."""

    def __init__(self) -> None:
        super().__init__()
        self._by_topic: dict[str, dict[MessageQueue, H]] = {}

    def __setitem__(self, queue: MessageQueue, held: H) -> None:
        super().__setitem__(queue, held)
        self._by_topic.setdefault(queue.topic, {})[queue] = held

    def __delitem__(self, queue: MessageQueue) -> None:
        super().__delitem__(queue)
        same = self._by_topic[queue.topic]
        del same[queue]
        if not same:
            del self._by_topic[queue.topic]

    @property
    def topics(self) -> Collection[str]:
        """The topics that have queues here."""
        return self._by_topic.keys()

    def of_topic(self, topic: str) -> list[H]:
        """Return the queues of a topic, dropped ones too."""
        return list(self._by_topic.get(topic, {}).values())


class HeldQueues:
    """All queues of one member, by wire name. Used from the event loop only.

    Attributes:
        pulled: queues that are pulled, including dropped ones that are not given up yet.
        popped: queues that are popped (brokers 5.x keep their offsets).
        cached: the messages that all pulled queues hold.
        keeps_offsets: no other member can own these queues, so their noted offsets stay valid after release.
    """

    def __init__(self, clock: Clock, offsets: OffsetStore, locks: QueueLocks | None = None) -> None:
        """``locks``: the broker locks for orderly consumption; None: queues are not locked."""
        self.pulled: QueueTable[ProcessQueue] = QueueTable()
        self.popped: QueueTable[PopProcessQueue] = QueueTable()
        self.cached = CachedByMember()
        self.keeps_offsets = False
        self._clock = clock
        self._offsets = offsets
        self._locks = locks
        self._background = Background()
        self._leaving: dict[ProcessQueue, asyncio.Task[None]] = {}
        self._kept: set[ProcessQueue] = set()  # not given up: their listeners did not end in time
        self._on_hold: list[Callable[[ProcessQueue], None]] = []
        self._on_hold_popped: list[Callable[[PopProcessQueue], None]] = []
        self._on_move: list[Callable[[ProcessQueue, ProcessQueue, bool], None]] = []
        self._on_leave: list[Callable[[ProcessQueue], None]] = []

    # callbacks of the parts that work on queues

    def on_hold(self, callback: Callable[[ProcessQueue], None]) -> None:
        """Call ``callback(held)`` for each queue that is to be pulled and consumed from now on."""
        self._on_hold.append(callback)

    def on_hold_popped(self, callback: Callable[[PopProcessQueue], None]) -> None:
        """Call ``callback(held)`` for each queue that is to be popped from now on."""
        self._on_hold_popped.append(callback)

    def on_move(self, callback: Callable[[ProcessQueue, ProcessQueue, bool], None]) -> None:
        """Call ``callback(before, now, is_requested)`` when a queue continues at another offset."""
        self._on_move.append(callback)

    def on_leave(self, callback: Callable[[ProcessQueue], None]) -> None:
        """Call ``callback(held)`` before a queue's last persist, so that it can note the offset."""
        self._on_leave.append(callback)

    # held queues

    def works(self, queue: MessageQueue) -> bool:
        """Return whether a queue is pulled and not dropped."""
        held = self.pulled.get(queue)
        return held is not None and not held.is_dropped

    def working(self) -> list[ProcessQueue]:
        """Return the pulled queues that are not dropped."""
        return [held for held in list(self.pulled.values()) if not held.is_dropped]

    def queues(self) -> set[MessageQueue]:
        """Return the queues held now, pulled and popped. Safe on any thread."""
        tables = (list(self.pulled.items()), list(self.popped.items()))
        return {queue for table in tables for queue, held in table if not held.is_dropped}

    def holds(self, held: ProcessQueue) -> bool:
        """Return whether results of this queue's listener still count: it is neither given up nor moved."""
        return self.pulled.get(held.queue) is held

    def is_leaving(self, held: ProcessQueue) -> bool:
        """Return whether a queue is being given up, or is kept only until its listener ends."""
        return held in self._leaving or held in self._kept

    @property
    def has_kept(self) -> bool:
        """True if a queue could not be given up: its listener did not end in time."""
        return any(held not in self._leaving for held in self._kept)

    def wake(self) -> None:
        """Wake all tasks that wait for a queue."""
        for held in (*self.pulled.values(), *self.popped.values()):
            held.wake()

    # taking

    async def lock(self, queues: Collection[MessageQueue]) -> Collection[MessageQueue]:
        """Lock queues that need a lock; return those this member may take."""
        if self._locks is None:
            return queues
        granted = await self._locks.lock(queues)
        return [queue for queue in queues if granted.get(queue)]

    async def unlock(self, queues: Collection[MessageQueue]) -> None:
        """Release the locks of queues, so that another member can have them."""
        if self._locks is not None:
            await self._locks.unlock(queues)

    async def renew_locks(self) -> None:
        """Renew the locks of all held queues; of none that is being unlocked, or it would be locked again."""
        if self._locks is None:
            return
        staying = [queue for queue, held in self.pulled.items() if held not in self._leaving]
        for queue, granted in (await self._locks.lock(staying)).items():
            if (held := self.pulled.get(queue)) is not None and not held.is_dropped:
                held.lock(granted)

    def forget(self, queue: MessageQueue) -> None:
        """Discard the offset noted when the queue was held before."""
        if not self.keeps_offsets:
            self._offsets.remove(queue)

    def hold(self, queue: MessageQueue, offset: int) -> ProcessQueue:
        """Take a queue to pull from ``offset`` on. If locks are used, the caller has the lock already."""
        held = ProcessQueue(queue, self._clock, offset, self.cached)
        held.lock(True)
        self._begin(held)
        return held

    def hold_popped(self, queue: MessageQueue) -> PopProcessQueue:
        """Take a queue to pop."""
        held = self.popped[queue] = PopProcessQueue(queue, self._clock)
        for callback in self._on_hold_popped:
            callback(held)
        return held

    def move(self, held: ProcessQueue, offset: int, *, note: bool, is_requested: bool = True) -> ProcessQueue:
        """Continue at another offset; messages fetched before are neither handed out nor committed.

        Args:
            held: the queue.
            offset: where it continues.
            note: also set the group's offset to it, in memory and in the store.
            is_requested: by the user or an administrator; False: the broker does not have the next offset.
        """
        held.drop()
        held.leave_member()
        fresh = ProcessQueue(held.queue, self._clock, offset, self.cached)
        fresh.take_over(held)
        for callback in self._on_move:
            callback(held, fresh, is_requested)
        if note:
            self._offsets.update(held.queue, offset)
            self._background.spawn("persist_moved", self._offsets.persist([held.queue]))
        self._begin(fresh)
        return fresh

    # giving up

    def begin_to_give_up(self, doomed: Collection[ProcessQueue]) -> None:
        """Stop handing out messages of these queues, and give them up in the background."""
        fresh = [held for held in doomed if held not in self._leaving]
        for held in doomed:
            held.drop()
        if fresh:
            task = self._background.spawn("give_up", self._give_up(fresh))
            self._leaving |= dict.fromkeys(fresh, task)

    async def give_up(self, doomed: Collection[ProcessQueue]) -> None:
        """Give queues up. An orderly queue whose listener does not end in time stays, dropped: try again."""
        self.begin_to_give_up(doomed)
        if tasks := {self._leaving[held] for held in doomed if held in self._leaving}:
            await asyncio.wait(tasks)

    def give_up_popped(self, queue: MessageQueue) -> None:
        """Give up a popped queue. There is no offset to persist: its broker keeps it."""
        self.popped[queue].drop()
        del self.popped[queue]

    async def close(self) -> None:
        """Give up all queues, even if listeners still run; store all their offsets again."""
        for queue in list(self.popped):
            self.give_up_popped(queue)
        await self._background.join()
        doomed = list(self.pulled.values())
        for held in doomed:
            held.drop()
        await self._leave(doomed, again=True)
        if self._locks is not None:
            await self._locks.unlock_all()

    def _begin(self, held: ProcessQueue) -> None:
        self.pulled[held.queue] = held
        for callback in self._on_hold:
            callback(held)

    async def _give_up(self, doomed: list[ProcessQueue]) -> None:
        try:
            free = await asyncio.gather(*map(self._nothing_runs, doomed))
            self._kept.update(doomed)
            if ended := [held for held, done in zip(doomed, free, strict=True) if done]:
                await self._leave(ended)
        finally:
            for held in doomed:
                del self._leaving[held]

    async def _nothing_runs(self, held: ProcessQueue) -> bool:
        """Wait for the listener that has messages of an orderly queue; return whether it has ended."""
        if self._locks is None:
            return True
        try:
            async with asyncio.timeout(_PATIENCE), held.consuming:
                return True
        except TimeoutError:
            return False

    async def _leave(self, doomed: list[ProcessQueue], *, again: bool = False) -> None:
        """Note, persist, remove and unlock all these queues together."""
        queues = [held.queue for held in doomed]
        for held in doomed:
            for callback in self._on_leave:
                callback(held)
        await self._offsets.persist(queues, again=again)
        for queue in queues:
            self.forget(queue)
        await self.unlock(queues)
        for held in doomed:
            self._kept.discard(held)
            held.leave_member()
            del self.pulled[held.queue]
