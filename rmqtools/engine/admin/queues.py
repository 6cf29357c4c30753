"""Administration of queues: the queues of a topic, and their offsets."""

import asyncio
from collections.abc import Mapping

from rmqtools.engine.admin.masters import AdminPart
from rmqtools.errors import RemotingTimeoutError
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.headers.codec import RequestHeader, decode_header
from rmqtools.protocol.headers.offset import (
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    OffsetResponseHeader,
    SearchOffsetRequestHeader,
)
from rmqtools.protocol.wire.command import request

_LOOK_PAUSE = 0.02  # seconds between checks for an expected change


class QueueAdmin(AdminPart):
    """The methods about queues; :class:`rmqtools.aio.Admin` has them all. Consumers use them too."""

    async def fetch_subscribe_queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be read, sorted. Fetches the route again.

        Raises:
            TopicNotFoundError: there is no such topic.
            PermissionDeniedError: the topic may not be read.
        """
        await self._client.routes.refresh(topic)
        return await self._client.routes.subscribe_queues(topic)

    async def fetch_publish_queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be sent to, in round-robin order. Fetches the route again.

        Raises:
            TopicNotFoundError: there is no such topic.
            PermissionDeniedError: the topic may not be written.
        """
        await self._client.routes.refresh(topic)
        return list((await self._client.routes.publish_info(topic)).queues)

    async def min_offset(self, queue: MessageQueue) -> int:
        """Return the first queue offset that still has a message."""
        return await self._bound(GetMinOffsetRequestHeader, queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return one more than the last queue offset that can be read; 0 if there is no such queue.

        The request goes to the queue's master: a slave may lack the last messages.
        A broker acknowledges a message some milliseconds before its queue shows it: see
        :meth:`await_readable`.
        """
        return await self._bound(GetMaxOffsetRequestHeader, queue)

    async def await_readable(self, max_offsets: Mapping[MessageQueue, int], *, timeout: float = 10.0) -> None:
        """Wait until queues show the acknowledged messages.

        Args:
            max_offsets: per queue, what :meth:`max_offset` must reach: the last acknowledged message's
                ``queue_offset`` plus one.
            timeout: seconds for all of them together.

        Raises:
            RemotingTimeoutError: a queue did not show it in time.
        """
        deadline = self._client.clock.monotonic() + timeout
        for queue, wanted in max_offsets.items():
            while (shown := await self.max_offset(queue)) < wanted:
                if self._client.clock.monotonic() > deadline:
                    raise RemotingTimeoutError(
                        f"{queue} shows offsets up to {shown} after {timeout} s, not up to {wanted}"
                    )
                await asyncio.sleep(_LOOK_PAUSE)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Return the offset of the first message stored at or after a time (ms since 1970); else the end."""
        header = SearchOffsetRequestHeader(
            topic=self._client.wire_topic(queue.topic),
            queue_id=queue.queue_id,
            timestamp=timestamp_ms,
            bname=queue.broker_name,
        )
        return await self._offset(queue, header)

    async def _bound(
        self,
        header: type[GetMinOffsetRequestHeader | GetMaxOffsetRequestHeader],
        queue: MessageQueue,
        *,
        or_slave: bool = False,
    ) -> int:
        topic = self._client.wire_topic(queue.topic)
        wanted = header(topic=topic, queue_id=queue.queue_id, bname=queue.broker_name)
        return await self._offset(queue, wanted, or_slave=or_slave)

    async def _offset(self, queue: MessageQueue, header: RequestHeader, *, or_slave: bool = False) -> int:
        answer = await self._masters.invoke_for(queue, request(header), or_slave=or_slave)
        return decode_header(OffsetResponseHeader, answer.ext_fields).offset
