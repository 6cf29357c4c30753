"""Operating consumer groups: members, offsets, settings; a part of :class:`rmqtools.aio.Admin`."""

from typing import Any

from rmqtools.engine.admin_group import GroupAdminCore
from rmqtools.engine.group_view import GroupViewer
from rmqtools.model.group import ConsumerConnection, ConsumeStats, MessageRequestMode
from rmqtools.model.group_view import GroupView
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import ConsumerRunningInfo


class GroupAdmin:
    """The methods about consumer groups; :class:`rmqtools.aio.Admin` has them all.

    Group and topic names are the user's: with a ``namespace`` in the settings they are in it, and answers
    name topics without it.
    """

    _groups: GroupAdminCore
    _viewer: GroupViewer

    async def fetch_group(self, group: str) -> GroupView:
        """Everything about a group at once: members, what each says it owns, how far the group is.

        A member that does not answer has its ``error`` set; nothing else is left out in silence.
        """
        return await self._viewer.fetch(group)

    async def fetch_consumer_offsets(self, group: str, topic: str) -> dict[MessageQueue, int | None]:
        """How far a group has come on each queue of a topic.

        Returns:
            For every queue that can be read, sorted, the offset it reads next; None: it has none yet, and
            its first member will begin where its own ``consume_from_where`` says.

        Raises:
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
        """
        return await self._groups.fetch_consumer_offsets(group, topic)

    async def update_consumer_offset(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Write down how far a group has come on a queue; a group the broker does not know is made there.

        Members that run go on from what they have in memory, and overwrite this: for a group that
        consumes take :meth:`reset_offsets`.

        Args:
            group: its name.
            queue: which queue.
            offset: what it is to read next; not checked against what the queue holds.

        Raises:
            MessageRejectedError: a group name that brokers refuse; nothing was sent.
            RocketMQError: the broker ignored it, since the offset was reset and nobody has pulled yet.
        """
        await self._groups.update_consumer_offset(group, queue, offset)

    async def reset_offsets(self, group: str, topic: str, timestamp_ms: int) -> dict[MessageQueue, int]:
        """Let a group read a topic again, or go on, from what was stored at a time on (ms since 1970).

        Brokers 5.x move the offsets themselves, also of running members; older ones tell the members to.

        Returns:
            Where each queue goes on.

        Raises:
            BrokerError: SUBSCRIPTION_GROUP_NOT_EXIST: no such group.
            TopicNotFoundError, PermissionDeniedError: there is no such topic, or it may not be read.
        """
        return await self._groups.reset_offsets(group, topic, timestamp_ms)

    async def fetch_consumer_connection(self, group: str) -> ConsumerConnection:
        """The members of a group and what they subscribe to, as all brokers together know them.

        A member is known some 30 s at the most after it has started, and for 2 minutes after it was killed.

        Returns:
            Members by client id, each once; no members at all where no broker knows one.
        """
        return await self._groups.fetch_consumer_connection(group)

    async def fetch_consumer_ids(self, group: str) -> list[str]:
        """The client ids of a group's members, as all brokers together know them, in Java's order."""
        return await self._groups.fetch_consumer_ids(group)

    async def fetch_consume_stats(self, group: str, topic: str | None = None) -> ConsumeStats:
        """How far a group is, and what the queues hold, as the brokers say.

        A queue without an offset counts as 0 here; :meth:`fetch_consumer_offsets` tells them apart.

        Args:
            group: its name.
            topic: only this one; None: every topic the group has an offset for. While members are
                running, only topics they subscribe to.
        """
        return await self._groups.fetch_consume_stats(group, topic)

    async def fetch_running_info(self, group: str, client_id: str) -> ConsumerRunningInfo:
        """What a member says of itself: settings, subscriptions, queues; its broker passes the question on.

        Raises:
            BrokerError: no broker has a connection to the member, or the member did not answer the broker.
            RemotingTimeoutError: nor did the broker within ``request_timeout``; it gives a member 10 s.
        """
        return await self._groups.fetch_running_info(group, client_id)

    async def create_group(self, group: str, **settings: Any) -> None:
        """Make a group on all brokers, or change one that exists: what is not given gets its default.

        Args:
            group: its name.
            settings: those of ``SubscriptionGroupConfig`` in snake_case: ``retry_max_times=16``,
                ``consume_enable=True``, ``consume_message_orderly=False``, ``consume_timeout_minute=15``, ...

        Raises:
            MessageRejectedError: a name that brokers refuse; nothing was sent.
            ConfigError: a setting nobody knows.
        """
        await self._groups.create_group(group, **settings)

    async def set_message_request_mode(
        self, topic: str, group: str, mode: MessageRequestMode, *, pop_share_queue_num: int = 0
    ) -> None:
        """Let a group's members pull a topic, or pop it (brokers 5.x); they follow at their next rebalance.

        Args:
            topic: which topic.
            group: which group.
            mode: PULL or POP.
            pop_share_queue_num: popping, by how many of its fellows a member's queues are shared too;
                -1: all members pop all queues.
        """
        await self._groups.set_message_request_mode(
            topic, group, mode, pop_share_queue_num=pop_share_queue_num
        )

    async def delete_group(self, group: str, *, clean_offset: bool = False) -> None:
        """Delete a group's settings on all brokers; an absent one is no error.

        Args:
            group: its name.
            clean_offset: forget how far it has come, too.
        """
        await self._groups.delete_group(group, clean_offset=clean_offset)
