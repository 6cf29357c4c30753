"""Locks on queues, held by brokers: of all members, one alone consumes a queue in order.

A broker forgets a lock after 60 s, so a member asks again every 20 s, and believes in one for 30 s.
Source of the rules: RebalanceImpl.lock, lockAll, unlock, unlockAll (Java client).
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable

from rmqtools.engine.client import ClientCore
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.bodies import format_lock, format_unlock, parse_locked_queues
from rmqtools.protocol.command import request
from rmqtools.protocol.headers import LockBatchMqRequestHeader, UnlockBatchMqRequestHeader

log = get_logger(__name__)

LOCK_INTERVAL = 20.0  # seconds; upstream rocketmq.client.rebalance.lockInterval


class QueueLocks:
    """The locks of one member of a group. ``group`` is the wire name."""

    def __init__(self, client: ClientCore, group: str) -> None:
        self._client = client
        self._group = group

    async def lock(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, bool]:
        """Ask for locks; whether each is granted. Of a broker that does not answer, or not readably, none."""
        answers = await asyncio.gather(
            *(self._lock_on(broker, asked) for broker, asked in _by_broker(queues).items())
        )
        return {queue: granted for answer in answers for queue, granted in answer.items()}

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Give locks back. Where that fails, they expire."""
        await asyncio.gather(
            *(self._unlock_on(broker, given) for broker, given in _by_broker(queues).items())
        )

    async def _lock_on(self, broker_name: str, queues: Collection[MessageQueue]) -> dict[MessageQueue, bool]:
        body = format_lock(self._group, self._client.client_id, list(queues))
        try:
            addr = self._client.routes.master_addr(broker_name)
            answer = await self._client.remoting.invoke_ok(addr, request(LockBatchMqRequestHeader(), body))
            granted = set(parse_locked_queues(answer.body))
        except RocketMQError as error:
            log.warning("lock_failed", group=self._group, broker=broker_name, reason=str(error))
            return {}
        return {queue: queue in granted for queue in queues}

    async def _unlock_on(self, broker_name: str, queues: Collection[MessageQueue]) -> None:
        body = format_unlock(self._group, self._client.client_id, list(queues))
        try:
            addr = self._client.routes.master_addr(broker_name)
            await self._client.remoting.invoke_ok(addr, request(UnlockBatchMqRequestHeader(), body))
        except RocketMQError as error:
            log.warning("unlock_failed", group=self._group, broker=broker_name, reason=str(error))


def _by_broker(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    grouped: dict[str, list[MessageQueue]] = defaultdict(list)
    for queue in queues:
        grouped[queue.broker_name].append(queue)
    return grouped
