"""Operating consumer groups: members, offsets, settings; a part of :class:`rmqtools.aio.Admin`."""

from typing import Any

from rmqtools.engine.admin.admin_group import GroupAdminCore
from rmqtools.engine.admin.group_view import GroupViewer
from rmqtools.model.group import ConsumerConnection, ConsumeStats, MessageRequestMode
from rmqtools.model.group_view import GroupView
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import ConsumerRunningInfo


class GroupAdmin:
    """The methods about consumer groups; :class:`rmqtools.aio.Admin` has them all.

    Give group and topic names without the ``namespace`` of the settings: it is added to requests, and removed
    from the topics of answers.
    """

    _groups: GroupAdminCore
    _viewer: GroupViewer

    async def fetch_group(self, group: str) -> GroupView:
        """Return everything about a group: members, the queues each says it owns, offsets and lag.

        A member that does not answer has its ``error`` set. Every other failure raises.
        """
        return await self._viewer.fetch(group)

    async def fetch_consumer_offsets(self, group: str, topic: str) -> dict[MessageQueue, int | None]:
        """Return the consumer offset of a group for each queue of a topic.

        Returns:
            For every queue that can be read, sorted, the offset the group reads next. None: the group has
            no offset yet, and its first member starts where its own ``consume_from`` says.

        Raises:
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
        """
        return await self._groups.fetch_consumer_offsets(group, topic)

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
        await self._groups.update_consumer_offset(group, queue, offset)

    async def reset_offsets(self, group: str, topic: str, timestamp_ms: int) -> dict[MessageQueue, int]:
        """Move a group's offsets of a topic to the first messages stored at or after a time (ms since 1970).

        Brokers 5.x move the offsets themselves, also for running members; older ones ask the members to.

        Returns:
            The new offset of each queue.

        Raises:
            BrokerError: SUBSCRIPTION_GROUP_NOT_EXIST: no such group.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
        """
        return await self._groups.reset_offsets(group, topic, timestamp_ms)

    async def fetch_consumer_connection(self, group: str) -> ConsumerConnection:
        """Return the members of a group and their subscriptions, collected from all brokers.

        Brokers know a member at the latest 30 s after its start, and for 2 minutes after it was killed.

        Returns:
            Members by client id, each once; no members if no broker knows one.
        """
        return await self._groups.fetch_consumer_connection(group)

    async def fetch_consumer_ids(self, group: str) -> list[str]:
        """Return the client ids of a group's members, collected from all brokers, in Java's order."""
        return await self._groups.fetch_consumer_ids(group)

    async def fetch_consume_stats(self, group: str, topic: str | None = None) -> ConsumeStats:
        """Return a group's consumer offsets and the queues' last offsets, as the brokers report them.

        A queue without a consumer offset shows 0 here; :meth:`fetch_consumer_offsets` shows None.

        Args:
            group: its name.
            topic: only this one; None: every topic the group has an offset for. While members run, only
                the topics they subscribe to.
        """
        return await self._groups.fetch_consume_stats(group, topic)

    async def fetch_running_info(self, group: str, client_id: str) -> ConsumerRunningInfo:
        """Return a member's own report: settings, subscriptions, queues. Its broker forwards the request.

        Raises:
            BrokerError: no broker has a connection to the member, or the member did not answer the broker.
            RemotingTimeoutError: no answer within ``request_timeout``; a broker gives a member 10 s.
        """
        return await self._groups.fetch_running_info(group, client_id)

    async def create_group(self, group: str, **settings: Any) -> None:
        """Create a group on all brokers, or change one that exists: settings not given get their default.

        Args:
            group: its name.
            settings: those of ``SubscriptionGroupConfig`` in snake_case: ``retry_max_times=16``,
                ``consume_enable=True``, ``consume_message_orderly=False``, ``consume_timeout_minute=15``, ...

        Raises:
            MessageRejectedError: a name that brokers refuse; nothing was sent.
            ConfigError: an unknown setting.
        """
        await self._groups.create_group(group, **settings)

    async def set_message_request_mode(
        self, topic: str, group: str, mode: MessageRequestMode, *, pop_share_queue_num: int = 0
    ) -> None:
        """Switch a group between pulling and popping a topic (brokers 5.x), from the next rebalance on.

        Args:
            topic: which topic.
            group: which group.
            mode: PULL or POP.
            pop_share_queue_num: for POP, how many other members also pop a member's queues; 0 or less:
                every member pops all queues.
        """
        await self._groups.set_message_request_mode(
            topic, group, mode, pop_share_queue_num=pop_share_queue_num
        )

    async def delete_group(self, group: str, *, clean_offset: bool = False) -> None:
        """Delete a group's settings on all brokers. No error if it does not exist.

        Args:
            group: its name.
            clean_offset: delete its consumer offsets too.
        """
        await self._groups.delete_group(group, clean_offset=clean_offset)
