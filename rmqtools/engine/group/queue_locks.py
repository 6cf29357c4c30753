"""Queue locks on brokers: only the member that has a queue's lock consumes it in order.

A broker drops a lock after 60 s. A member renews its locks every 20 s and trusts a lock for 30 s. A static
topic's queues are locked by the broker that serves them now.
Source of the rules: RebalanceImpl.lock, lockAll, unlock, unlockAll, buildProcessQueueTableByBrokerName (Java
client). Ours: a request goes on when its round is cut off, a broker gets a member's next request after its
answer, and a member that leaves releases what it may have locked. Otherwise a broker may grant a lock to a
member that has left, and nobody consumes the queue for a minute.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable

from rmqtools.engine.connection.background import Background
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.headers.group import LockBatchMqRequestHeader, UnlockBatchMqRequestHeader
from rmqtools.protocol.wire.bodies import format_lock, format_unlock, parse_locked_queues
from rmqtools.protocol.wire.command import request

log = get_logger(__name__)

LOCK_MAX_LIVE_TIME = 30.0  # seconds for which a lock is trusted; upstream REBALANCE_LOCK_MAX_LIVE_TIME
LOCK_INTERVAL = 20.0  # seconds; upstream rocketmq.client.rebalance.lockInterval


class QueueLocks:
    """The locks of one member of a group. ``group`` is the wire name; ``client_id``: None: the client's."""

    def __init__(self, client: ClientCore, group: str, client_id: str | None = None) -> None:
        self._client = client
        self._group = group
        self._client_id = client_id or client.client_id
        self._tasks = Background()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # by broker name
        self._asked: set[MessageQueue] = set()  # neither refused nor released: the lock may be this member's
        self._unanswered: set[str] = set()  # names of the brokers that the log has named

    async def lock(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, bool]:
        """Request locks; return whether each is granted. A missing or unreadable answer grants none.

        The log says once that a broker does not answer, and once that it does again.
        """
        granted: dict[MessageQueue, bool] = {}
        tasks = [
            self._tasks.spawn("lock", self._lock_on(broker, some, granted))
            for broker, some in self._by_broker(queues).items()
        ]
        if tasks:
            await asyncio.wait(tasks)
        return granted

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Release locks. If that fails, they expire."""
        await asyncio.gather(
            *(self._unlock_on(broker, given) for broker, given in self._by_broker(queues).items())
        )

    async def unlock_all(self) -> None:
        """Release every lock that a broker has granted, or may yet grant to a request that was cut off."""
        await self._tasks.join()
        await self.unlock(list(self._asked))

    async def _lock_on(
        self, broker_name: str, queues: Collection[MessageQueue], granted: dict[MessageQueue, bool]
    ) -> None:
        """Note in ``granted`` what a broker answers."""
        async with self._turns[broker_name]:
            self._asked.update(queues)
            answer = await self._ask(broker_name, queues)
            granted.update(answer)
            self._asked.difference_update(queue for queue, is_granted in answer.items() if not is_granted)

    async def _ask(self, broker_name: str, queues: Collection[MessageQueue]) -> dict[MessageQueue, bool]:
        body = format_lock(self._group, self._client_id, list(queues))
        try:
            addr = self._client.routes.master_addr(broker_name)
            answer = await self._client.remoting.invoke_ok(addr, request(LockBatchMqRequestHeader(), body))
            granted = set(await parse_aside(parse_locked_queues, answer.body))
        except RocketMQError as error:
            if broker_name not in self._unanswered:
                self._unanswered.add(broker_name)
                log.warning("lock_failed", group=self._group, broker=broker_name, reason=str(error))
            return {}
        if broker_name in self._unanswered:
            self._unanswered.discard(broker_name)
            log.info("lock_answered", group=self._group, broker=broker_name)
        return {queue: queue in granted for queue in queues}

    async def _unlock_on(self, broker_name: str, queues: Collection[MessageQueue]) -> None:
        body = format_unlock(self._group, self._client_id, list(queues))
        try:
            async with self._turns[broker_name]:
                self._asked.difference_update(queues)
                addr = self._client.routes.master_addr(broker_name)
                await self._client.remoting.invoke_ok(addr, request(UnlockBatchMqRequestHeader(), body))
        except RocketMQError as error:
            log.warning("unlock_failed", group=self._group, broker=broker_name, reason=str(error))

    def _by_broker(self, queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
        grouped: dict[str, list[MessageQueue]] = defaultdict(list)
        for queue in queues:
            grouped[self._client.routes.broker_name(queue)].append(queue)
        return grouped
