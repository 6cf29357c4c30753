"""Stores a group's consumer offsets: on the brokers (clustering) or in a file (broadcasting).

A consumer offset is the next queue offset to consume. It is noted in memory after every message, and stored
every few seconds and when a queue is given up. Source of the rules: RemoteBrokerOffsetStore (Java client).
Ours: commits are acknowledged requests, repeated when they fail. A stored offset is not sent again, unless a
request to its broker went unanswered (a killed broker loses offsets not yet flushed). Each broker gets
one offset at a time: a broker that receives the first two of a group and topic together loses one
(ConsumerOffsetManager.commitOffset), and of two of a queue it may store the older one last. So a request
goes on when its caller is cancelled, as by closing, and the next one waits for its answer. Pulls carry
offsets too, and a busy broker may handle a pull after a later commit: then the stored offset goes back. So
what is stored behind a pull with another offset is sent once more.

While a master is out of the route, its slave gets the offsets. The master knows nothing of them when it is
back, and its slave takes the master's older ones within a minute (SlaveSynchronize). So what is known to be
stored belongs to one address: all offsets go to the next one again.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from rmqtools.engine.connection.background import Background
from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import BrokerError, RemotingError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.start_offset import known_offset
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.offset import (
    OffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rmqtools.protocol.wire.command import request

log = get_logger(__name__)


class OffsetStore(Protocol):
    """The offsets of one group, as one of its members keeps them."""

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """Note an offset in memory; ``increase_only``: keep a higher one that is noted already."""

    def before_persist(self, callback: Callable[[MessageQueue], None]) -> None:
        """Call ``callback(queue)`` just before a queue's offset is stored, so that it can note the latest."""

    def read_memory(self, queue: MessageQueue) -> int | None:
        """Return the offset noted in memory, 0 or more; None: there is none."""

    def offset_for_pull(self, queue: MessageQueue) -> int | None:
        """Return the offset that a pull carries for its broker to store; None: none."""

    async def read_store(self, queue: MessageQueue) -> int | None:
        """Return the stored offset; None: there is none. A negative one is returned, and never noted.

        Raises:
            RocketMQError: the store could not be read.
        """

    async def persist(self, queues: Iterable[MessageQueue], *, again: bool = False) -> None:
        """Store the noted offsets of these queues. A failure is logged, and the next call stores the offset.

        ``again``: also store offsets that are known to be stored.
        """

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Note and store these offsets.

        Raises:
            RocketMQError: some offsets are not stored; the reason is that of the first.
        """

    def forget_stored(self, broker_name: str) -> None:
        """Treat this broker's stored offsets as unknown and send them again."""

    def remove(self, queue: MessageQueue) -> None:
        """Forget the offset noted in memory."""

    def noted(self) -> dict[MessageQueue, int]:
        """All offsets noted in memory."""


class NotedOffsets:
    """The offsets noted in memory: the common part of both stores."""

    def __init__(self, offsets: Mapping[MessageQueue, int] = MappingProxyType({})) -> None:
        self._offsets = dict(offsets)
        self._note_latest: Callable[[MessageQueue], None] = _note_nothing

    def before_persist(self, callback: Callable[[MessageQueue], None]) -> None:
        """See :class:`OffsetStore`."""
        self._note_latest = callback

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """See :class:`OffsetStore`."""
        if not increase_only or offset > self._offsets.get(queue, -1):
            self._offsets[queue] = offset

    def read_memory(self, queue: MessageQueue) -> int | None:
        """See :class:`OffsetStore`."""
        return self._offsets.get(queue)

    def noted(self) -> dict[MessageQueue, int]:
        """See :class:`OffsetStore`."""
        return dict(self._offsets)


def _note_nothing(_: MessageQueue) -> None:
    """Do nothing: all offsets are noted as soon as messages are consumed."""


@dataclass(slots=True)
class _Stored:
    """Offsets that a server is known to have stored."""

    addr: str
    offsets: dict[MessageQueue, int] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    """Topics of which it has got an offset."""


class RemoteBrokerOffsetStore(NotedOffsets):
    """Offsets on the brokers. Queues have wire names.

    Each broker has its own lock, so a broker that does not answer delays only its own offsets.
    """

    def __init__(self, client: ClientCore, group: str) -> None:
        super().__init__()
        self._client = client
        self._group = group
        self._stored: dict[str, _Stored] = {}  # by broker name
        self._storing: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # keeps requests in order
        self._tasks = Background()
        self._unanswered: Counter[str] = Counter()  # broker name -> offsets it did not answer for
        self._carried: dict[MessageQueue, int] = {}  # by the first pull since the queue's last commit

    def offset_for_pull(self, queue: MessageQueue) -> int | None:
        """See :class:`OffsetStore`.

        Pulls are not serialized with commits, so they carry no offset until the broker has one of the topic.
        """
        offset = self._offsets.get(queue)
        if offset is None or queue.topic not in self._stored_at(self._broker_name(queue)).topics:
            return None
        self._carried.setdefault(queue, offset)
        return offset

    async def read_store(self, queue: MessageQueue) -> int | None:
        """See :class:`OffsetStore`. Also notes the offset it reads, unless it is negative."""
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=self._group, topic=queue.topic, queue_id=queue.queue_id, bname=queue.broker_name
        )
        stored = self._stored_at(self._broker_name(queue))
        try:
            answer = await self._client.remoting.invoke_ok(stored.addr, request(header))
        except BrokerError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        offset = decode_header(OffsetResponseHeader, answer.ext_fields).offset
        if known_offset(offset) is not None:
            self._offsets[queue] = stored.offsets[queue] = offset
        return offset

    async def persist(self, queues: Iterable[MessageQueue], *, again: bool = False) -> None:
        """See :class:`OffsetStore`."""
        grouped = self._by_broker(queues)
        await self._finish(self._persist_on(name, each, again=again) for name, each in grouped.items())

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        """See :class:`OffsetStore`."""
        self._offsets.update(offsets)
        errors: list[RocketMQError] = []
        await self._finish(
            self._commit_on(name, {queue: offsets[queue] for queue in queues}, errors)
            for name, queues in self._by_broker(offsets).items()
        )
        if errors:
            raise errors[0]

    def forget_stored(self, broker_name: str) -> None:
        """See :class:`OffsetStore`."""
        self._stored.pop(broker_name, None)

    def remove(self, queue: MessageQueue) -> None:
        """See :class:`OffsetStore`."""
        self._offsets.pop(queue, None)
        self._carried.pop(queue, None)
        if (stored := self._stored.get(self._broker_name(queue))) is not None:
            stored.offsets.pop(queue, None)

    async def _finish(self, works: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Wait for all of these; they go on if this is cancelled."""
        if tasks := [self._tasks.spawn("store_offsets", work) for work in works]:
            await asyncio.wait(tasks)

    async def _persist_on(self, broker_name: str, queues: Iterable[MessageQueue], *, again: bool) -> None:
        """Store offsets one after the other; stop once the broker leaves any request unanswered."""
        unanswered = self._unanswered[broker_name]
        async with self._storing[broker_name]:
            for queue in queues:
                if self._unanswered[broker_name] > unanswered:
                    return
                self._note_latest(queue)
                offset = self._offsets.get(queue)
                if offset is not None:
                    await self._try_to_store(queue, offset, again=again)

    async def _try_to_store(self, queue: MessageQueue, offset: int, *, again: bool) -> None:
        try:
            if again or self._stored_at(self._broker_name(queue)).offsets.get(queue) != offset:
                await self._store(queue, offset)
        except RocketMQError as error:
            log.warning("consumer_offset_not_stored", queue=str(queue), offset=offset, reason=str(error))

    async def _commit_on(
        self, broker_name: str, offsets: Mapping[MessageQueue, int], errors: list[RocketMQError]
    ) -> None:
        """Store offsets one after the other, until one cannot be stored; ``errors`` gets the reason."""
        try:
            async with self._storing[broker_name]:
                for queue, offset in offsets.items():
                    await self._store(queue, offset)
        except RocketMQError as error:
            errors.append(error)

    async def _store(self, queue: MessageQueue, offset: int) -> None:
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
            bname=queue.broker_name,
        )
        broker_name = self._broker_name(queue)
        stored = self._stored_at(broker_name)
        try:
            answer = await self._client.remoting.invoke_ok(stored.addr, request(header))
        except RemotingError:
            self._unanswered[broker_name] += 1
            self.forget_stored(broker_name)
            raise
        if answer.remark:  # the broker answers SUCCESS but stores nothing (useServerSideResetOffset)
            raise RocketMQError(f"offset {offset} of {queue} was not stored: {answer.remark}")
        stored.topics.add(queue.topic)
        if self._carried.pop(queue, offset) == offset:
            stored.offsets[queue] = offset
        else:
            stored.offsets.pop(queue, None)

    def _stored_at(self, broker_name: str) -> _Stored:
        """Return what the server that gets a broker's offsets now has stored: its master, else a slave.

        Raises:
            RemotingConnectError: none is in the route.
        """
        addr = self._client.routes.admin_addr(broker_name)
        stored = self._stored.get(broker_name)
        if stored is None or stored.addr != addr:
            stored = self._stored[broker_name] = _Stored(addr)
        return stored

    def _by_broker(self, queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
        grouped: dict[str, list[MessageQueue]] = defaultdict(list)
        for queue in queues:
            grouped[self._broker_name(queue)].append(queue)
        return grouped

    def _broker_name(self, queue: MessageQueue) -> str:
        return self._client.routes.broker_name(queue)
