"""Administration of consumer groups: their offsets. Each broker stores those of its own queues."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from rmqtools.engine.admin.broker_requests import fetch_settings
from rmqtools.engine.admin.masters import Masters
from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.errors import BrokerError, RocketMQError, UnsupportedError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import ConsumeStats
from rmqtools.model.group_config import SubscriptionGroupConfig
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.endpoint.features import QUEUE_RESETS
from rmqtools.policy.start_offset import known_offset
from rmqtools.policy.validate import MAX_GROUP_LENGTH, check_name
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.group import GetConsumeStatsRequestHeader, UpdateSubscriptionGroupRequestHeader
from rmqtools.protocol.headers.offset import (
    OffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    ResetOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rmqtools.protocol.wire.bodies import (
    format_body,
    parse_consume_stats,
    parse_reset_offset,
)
from rmqtools.protocol.wire.command import request

log = get_logger(__name__)


class GroupOffsetAdmin(QueueAdmin):
    """The methods about offsets of consumer groups; :class:`rmqtools.aio.Admin` has them all.

    Give group and topic names without the ``namespace`` of the settings: it is added to requests, and removed
    from the topics of answers.
    """

    async def fetch_consumer_offsets(self, group: str, topic: str) -> dict[MessageQueue, int | None]:
        """Return the consumer offset of a group for each queue of a topic.

        Returns:
            For every queue that can be read, sorted, the offset the group reads next. None: the group has
            no offset yet, and its first member starts where its own ``consume_from`` says.

        Raises:
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
        """
        queues = await self.fetch_subscribe_queues(topic)
        return await self._masters.each_queue(lambda one: self._fetch_consumer_offset(group, one), queues)

    async def update_consumer_offset(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Store a group's consumer offset for one queue. The broker creates a group it does not know.

        Running members keep the offset they have in memory and overwrite this one: use
        :meth:`reset_offsets` for a group that is consuming.

        Args:
            group: its name.
            queue: which queue.
            offset: the offset it reads next; not checked against the offsets of the queue.

        Raises:
            MessageRejectedError: a group name that brokers refuse; nothing was sent.
            RocketMQError: the broker ignored it, because the offset was reset and no member has pulled since.
        """
        check_name("group", group, MAX_GROUP_LENGTH)
        command = request(
            UpdateConsumerOffsetRequestHeader(
                consumer_group=self._wire(group),
                topic=self._wire(queue.topic),
                queue_id=queue.queue_id,
                commit_offset=offset,
                bname=queue.broker_name,
            )
        )
        try:
            answer = await self._masters.invoke_for(queue, command)
        except BrokerError as error:
            if error.code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                raise
            await self._create_where(queue, group)
            answer = await self._masters.invoke_for(queue, command)
        if answer.remark:  # the broker answers SUCCESS but stores nothing (useServerSideResetOffset)
            raise RocketMQError(
                f"offset {offset} of group {group!r} for {queue} was not stored: {answer.remark}; "
                "the first pull after a reset makes it possible again"
            )

    async def reset_offsets(self, group: str, topic: str, timestamp_ms: int) -> dict[MessageQueue, int]:
        """Move a group's offsets of a topic to the first messages stored at or after a time (ms since 1970).

        Brokers 5.x move the offsets themselves, also for running members; older ones ask the members to.

        Returns:
            The new offset of each queue.

        Raises:
            BrokerError: SUBSCRIPTION_GROUP_NOT_EXIST: no such group.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
        """
        queues = await self.fetch_subscribe_queues(topic)
        ours = {queue.broker_name: queue for queue in queues}
        tables = await asyncio.gather(
            *(self._reset_on_broker(group, queue, timestamp_ms) for queue in ours.values())
        )
        offsets = {self._bare_queue(queue): offset for table in tables for queue, offset in table.items()}
        for queue in set(queues) - offsets.keys():
            offsets[queue] = await self.search_offset(queue, timestamp_ms)
            await self.update_consumer_offset(group, queue, offsets[queue])
        return offsets

    async def reset_queue_offset(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Move a group's offset of one queue, also while members consume it (brokers 5.1 and newer).

        The broker reports the offset to the member's next pull, and ignores commits until then.

        Args:
            group: its name.
            queue: which queue.
            offset: the offset it reads next: one more than that of a message to skip.

        Raises:
            UnsupportedError: the broker is older than 5.1.0, or has ``useServerSideResetOffset=false``: it
                would move all queues of the topic; nothing was sent.
            BrokerError: SUBSCRIPTION_GROUP_NOT_EXIST: no such group; SYSTEM_ERROR: no such offset.
            TopicNotFoundError: there is no such topic.

        Source of the rule: AdminBrokerProcessor.resetOffset (broker 5.5.0).
        """
        await self._check_queue_resets(queue)
        header = ResetOffsetRequestHeader(
            group=self._wire(group),
            topic=self._wire(queue.topic),
            queue_id=queue.queue_id,
            offset=offset,
            timestamp=-1,
            is_force=True,
        )
        await self._masters.invoke_for(queue, request(header))

    async def _check_queue_resets(self, queue: MessageQueue) -> None:
        """Refuse brokers that ignore queue and offset of a reset, and would move all queues by time."""
        addr = await self._masters.addr_for(queue)
        await self._client.versions.check(QUEUE_RESETS, broker_name=queue.broker_name, addr=addr)
        settings = await fetch_settings(self._client, addr)
        if settings.get("useServerSideResetOffset") != "true":
            raise UnsupportedError(
                f"{QUEUE_RESETS.name}: {queue.broker_name} at {addr} has useServerSideResetOffset=false: set "
                f"it to true, or {QUEUE_RESETS.on_old_brokers}",
                QUEUE_RESETS.name,
                addr,
            )

    async def fetch_consume_stats(self, group: str, topic: str | None = None) -> ConsumeStats:
        """Return a group's consumer offsets and the queues' last offsets, as the brokers report them.

        A queue without a consumer offset shows 0 here; :meth:`fetch_consumer_offsets` shows None.

        Args:
            group: its name.
            topic: only this one; None: every topic the group has an offset for. While members run, only
                the topics they subscribe to.
        """
        wire = None if topic is None else self._wire(topic)
        header = GetConsumeStatsRequestHeader(consumer_group=self._wire(group), topic=wire)
        stats = [
            await parse_aside(parse_consume_stats, answer.body)
            for answer in (await self._masters.invoke_each(header)).values()
        ]
        table = {
            self._bare_queue(queue): replace(
                offsets, consumer_offset=known_offset(offsets.consumer_offset) or 0
            )
            for each in stats
            for queue, offsets in each.offset_table.items()
        }
        return ConsumeStats(offset_table=table, consume_tps=sum(each.consume_tps for each in stats))

    async def _fetch_consumer_offset(self, group: str, queue: MessageQueue) -> int | None:
        """Return a group's offset in one queue; None: it has none."""
        return await fetch_consumer_offset(
            self._masters, self._wire(group), self._wire(queue.topic), queue, or_slave=True
        )

    async def _reset_on_broker(
        self, group: str, queue: MessageQueue, timestamp_ms: int
    ) -> Mapping[MessageQueue, int]:
        """Reset offsets on one broker. Empty if it does not: before 5.x it only asks members to reset."""
        header = ResetOffsetRequestHeader(
            group=self._wire(group), topic=self._wire(queue.topic), timestamp=timestamp_ms, is_force=True
        )
        try:
            answer = await self._masters.invoke_for(queue, request(header))
        except BrokerError as error:
            if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
            return {}
        return (await parse_aside(parse_reset_offset, answer.body)).offset_table

    async def _create_where(self, queue: MessageQueue, group: str) -> None:
        """Create a group on the broker of a queue, with that broker's defaults."""
        body = format_body(SubscriptionGroupConfig(group_name=self._wire(group)))
        await self._masters.invoke_for(queue, request(UpdateSubscriptionGroupRequestHeader(), body))
        log.info("group_created", group=group, broker=queue.broker_name)


async def fetch_consumer_offset(
    masters: Masters, group: str, topic: str, queue: MessageQueue, *, or_slave: bool = False
) -> int | None:
    """Return a group's stored offset in a queue; None: there is none. Group and topic have wire names.

    ``or_slave``: see :meth:`Masters.invoke_for`.
    """
    header = QueryConsumerOffsetRequestHeader(
        consumer_group=group,
        topic=topic,
        queue_id=queue.queue_id,
        set_zero_if_not_found=False,
        bname=queue.broker_name,
    )
    try:
        answer = await masters.invoke_for(queue, request(header), or_slave=or_slave)
    except BrokerError as error:
        if error.code != ResponseCode.QUERY_NOT_FOUND:
            raise
        return None
    return known_offset(decode_header(OffsetResponseHeader, answer.ext_fields).offset)
