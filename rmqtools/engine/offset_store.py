"""Where a group's consumer offsets are kept: on the brokers (clustering) or in a file (broadcasting).

A consumer offset is the next queue offset to consume. In memory it is kept at every message, in the store
every few seconds and when a queue is given up. Source of the rules: RemoteBrokerOffsetStore (Java client).
Ours: commits are answered and made again when they fail, an offset that is stored already is not sent again,
and a broker is told one offset after the other: told the first two of a group and topic at the same time, it
forgets one (ConsumerOffsetManager.commitOffset).
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol

from rmqtools.engine.client import ClientCore
from rmqtools.errors import BrokerError, RocketMQError
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

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        """Store what is noted of these queues. What fails is logged, and stored the next time."""

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Note and store these offsets.

        Raises:
            RocketMQError: some are not stored, for the reason of the first.
        """

    def remove(self, queue: MessageQueue) -> None:
        """Forget in memory what is noted of a queue."""

    def noted(self) -> dict[MessageQueue, int]:
        """All that is noted in memory."""


class RemoteBrokerOffsetStore:
    """Offsets on the brokers. Queues have wire names."""

    def __init__(self, client: ClientCore, group: str) -> None:
        self._client = client
        self._group = group
        self._offsets: dict[MessageQueue, int] = {}
        self._stored: dict[MessageQueue, int] = {}
        self._told: set[tuple[str, str]] = set()
        self._storing = asyncio.Lock()  # or a broker may store the older of two offsets last

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
        is_known = (queue.topic, queue.broker_name) in self._told
        return self._offsets.get(queue) if is_known else None

    async def read_store(self, queue: MessageQueue) -> int | None:
        """See :class:`OffsetStore`. Notes what it reads."""
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=self._group, topic=queue.topic, queue_id=queue.queue_id, bname=queue.broker_name
        )
        routes = self._client.routes
        addr = routes.admin_addr(routes.broker_name(queue))
        try:
            answer = await self._client.remoting.invoke_ok(addr, request(header))
        except BrokerError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        offset = decode_header(OffsetResponseHeader, answer.ext_fields).offset
        self._offsets[queue] = self._stored[queue] = offset
        return offset

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        """See :class:`OffsetStore`."""
        async with self._storing:
            due = {
                queue: offset
                for queue in queues
                if (offset := self._offsets.get(queue)) is not None and self._stored.get(queue) != offset
            }
            await asyncio.gather(*(self._persist_in_turn(each) for each in _by_broker(due)))

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        """See :class:`OffsetStore`."""
        async with self._storing:
            self._offsets.update(offsets)
            stored = (self._store_in_turn(each) for each in _by_broker(offsets))
            answers = await asyncio.gather(*stored, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    def remove(self, queue: MessageQueue) -> None:
        """See :class:`OffsetStore`."""
        self._offsets.pop(queue, None)
        self._stored.pop(queue, None)

    def noted(self) -> dict[MessageQueue, int]:
        """See :class:`OffsetStore`."""
        return dict(self._offsets)

    async def _persist_in_turn(self, offsets: Mapping[MessageQueue, int]) -> None:
        for queue, offset in offsets.items():
            try:
                await self._store(queue, offset)
            except RocketMQError as error:
                log.warning("consumer_offset_not_stored", queue=str(queue), offset=offset, reason=str(error))

    async def _store_in_turn(self, offsets: Mapping[MessageQueue, int]) -> None:
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
        routes = self._client.routes
        addr = routes.admin_addr(routes.broker_name(queue))
        answer = await self._client.remoting.invoke_ok(addr, request(header))
        if answer.remark:  # the broker says SUCCESS and does nothing (useServerSideResetOffset)
            raise RocketMQError(f"offset {offset} of {queue} was not stored: {answer.remark}")
        self._stored[queue] = offset
        self._told.add((queue.topic, queue.broker_name))


def _by_broker(offsets: Mapping[MessageQueue, int]) -> Iterable[dict[MessageQueue, int]]:
    grouped: dict[str, dict[MessageQueue, int]] = defaultdict(dict)
    for queue, offset in offsets.items():
        grouped[queue.broker_name][queue] = offset
    return grouped.values()
