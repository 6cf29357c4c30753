"""Where a group's consumer offsets are kept: on the brokers (clustering) or in a file (broadcasting).

A consumer offset is the next queue offset to consume. In memory it is kept at every message, in the store
every few seconds and when a queue is given up. Source of the rules: RemoteBrokerOffsetStore (Java client).
Ours: commits are answered and made again when they fail; an offset that is stored already is not sent again
unless its broker did not answer meanwhile (killed, it loses what it had not flushed); and a broker is told
one offset after the other: told the first two of a group and topic at the same time, it forgets one
(ConsumerOffsetManager.commitOffset).
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol

from rmqtools.engine.client import ClientCore
from rmqtools.errors import BrokerError, RemotingError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.command import request
from rmqtools.protocol.headers import (
    OffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
    decode_header,
)

log = get_logger(__name__)


class OffsetStore(Protocol):
    """The offsets of one group, as one of its members keeps them."""

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """Note in memory how far a queue is consumed; ``increase_only``: unless it is further already."""

    def read_memory(self, queue: MessageQueue) -> int | None:
        """What is noted in memory; None: nothing."""

    def offset_for_pull(self, queue: MessageQueue) -> int | None:
        """What a pull brings along for its broker to store; None: nothing."""

    async def read_store(self, queue: MessageQueue) -> int | None:
        """What is stored; None: nothing.

        Raises:
            RocketMQError: it cannot be told.
        """

    async def persist(self, queues: Iterable[MessageQueue], *, again: bool = False) -> None:
        """Store what is noted of these queues. What fails is logged, and stored the next time.

        ``again``: also what is known to be stored.
        """

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Note and store these offsets.

        Raises:
            RocketMQError: some are not stored, for the reason of the first.
        """

    def doubt(self, broker_name: str) -> None:
        """A broker did not answer: it may have lost what it had stored, and is told again."""

    def remove(self, queue: MessageQueue) -> None:
        """Forget in memory what is noted of a queue."""

    def noted(self) -> dict[MessageQueue, int]:
        """All that is noted in memory."""


class RemoteBrokerOffsetStore:
    """Offsets on the brokers. Queues have wire names.

    Each broker has a line of its own: one that does not answer keeps only its own offsets waiting.
    """

    def __init__(self, client: ClientCore, group: str) -> None:
        self._client = client
        self._group = group
        self._offsets: dict[MessageQueue, int] = {}
        self._stored: dict[str, dict[MessageQueue, int]] = defaultdict(dict)  # by broker name
        self._told: dict[str, set[str]] = defaultdict(set)  # broker name -> topics it has an offset of
        self._storing: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # or the older may be stored last
        self._unanswered: Counter[str] = Counter()  # broker name -> offsets it did not answer for

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """See :class:`OffsetStore`."""
        if not increase_only or offset > self._offsets.get(queue, -1):
            self._offsets[queue] = offset

    def read_memory(self, queue: MessageQueue) -> int | None:
        """See :class:`OffsetStore`."""
        return self._offsets.get(queue)

    def offset_for_pull(self, queue: MessageQueue) -> int | None:
        """See :class:`OffsetStore`.

        Pulls are not in turn: nothing until the broker has an offset of the topic.
        """
        is_known = queue.topic in self._told[self._broker_name(queue)]
        return self._offsets.get(queue) if is_known else None

    async def read_store(self, queue: MessageQueue) -> int | None:
        """See :class:`OffsetStore`. Notes what it reads."""
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=self._group, topic=queue.topic, queue_id=queue.queue_id, bname=queue.broker_name
        )
        broker_name = self._broker_name(queue)
        addr = self._client.routes.admin_addr(broker_name)
        try:
            answer = await self._client.remoting.invoke_ok(addr, request(header))
        except BrokerError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        offset = decode_header(OffsetResponseHeader, answer.ext_fields).offset
        self._offsets[queue] = self._stored[broker_name][queue] = offset
        return offset

    async def persist(self, queues: Iterable[MessageQueue], *, again: bool = False) -> None:
        """See :class:`OffsetStore`."""
        grouped = self._by_broker(queues)
        await asyncio.gather(*(self._persist_on(name, each, again=again) for name, each in grouped.items()))

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        """See :class:`OffsetStore`."""
        self._offsets.update(offsets)
        stored = (
            self._commit_on(name, {queue: offsets[queue] for queue in queues})
            for name, queues in self._by_broker(offsets).items()
        )
        for answer in await asyncio.gather(*stored, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer

    def doubt(self, broker_name: str) -> None:
        """See :class:`OffsetStore`."""
        self._stored.pop(broker_name, None)
        self._told.pop(broker_name, None)

    def remove(self, queue: MessageQueue) -> None:
        """See :class:`OffsetStore`."""
        self._offsets.pop(queue, None)
        self._stored[self._broker_name(queue)].pop(queue, None)

    def noted(self) -> dict[MessageQueue, int]:
        """See :class:`OffsetStore`."""
        return dict(self._offsets)

    async def _persist_on(self, broker_name: str, queues: Iterable[MessageQueue], *, again: bool) -> None:
        """Store offsets in turn until the broker leaves one unanswered, also one that was waited for."""
        unanswered = self._unanswered[broker_name]
        async with self._storing[broker_name]:
            for queue in queues:
                if self._unanswered[broker_name] > unanswered:
                    return
                offset = self._offsets.get(queue)
                if offset is not None and (again or self._stored[broker_name].get(queue) != offset):
                    await self._try_to_store(queue, offset)

    async def _try_to_store(self, queue: MessageQueue, offset: int) -> None:
        try:
            await self._store(queue, offset)
        except RocketMQError as error:
            log.warning("consumer_offset_not_stored", queue=str(queue), offset=offset, reason=str(error))

    async def _commit_on(self, broker_name: str, offsets: Mapping[MessageQueue, int]) -> None:
        async with self._storing[broker_name]:
            for queue, offset in offsets.items():
                await self._store(queue, offset)

    async def _store(self, queue: MessageQueue, offset: int) -> None:
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
            bname=queue.broker_name,
        )
        broker_name = self._broker_name(queue)
        addr = self._client.routes.admin_addr(broker_name)
        try:
            answer = await self._client.remoting.invoke_ok(addr, request(header))
        except RemotingError:
            self._unanswered[broker_name] += 1
            self.doubt(broker_name)
            raise
        if answer.remark:  # the broker says SUCCESS and does nothing (useServerSideResetOffset)
            raise RocketMQError(f"offset {offset} of {queue} was not stored: {answer.remark}")
        self._stored[broker_name][queue] = offset
        self._told[broker_name].add(queue.topic)

    def _by_broker(self, queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
        grouped: dict[str, list[MessageQueue]] = defaultdict(list)
        for queue in queues:
            grouped[self._broker_name(queue)].append(queue)
        return grouped

    def _broker_name(self, queue: MessageQueue) -> str:
        return self._client.routes.broker_name(queue)
