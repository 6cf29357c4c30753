"""Combines all information about a consumer group: brokers' view, members' reports, progress."""

import asyncio
from collections.abc import Collection

from rmqtools.engine.admin.admin import AdminCore
from rmqtools.engine.admin.admin_group import GroupAdminCore
from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import PermissionDeniedError, RocketMQError, TopicNotFoundError
from rmqtools.model.group import Connection
from rmqtools.model.group_view import GroupMember, GroupView, QueueProgress
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.group_member import member_of, silent_member


class GroupViewer:
    """Fetches the parts of :class:`GroupView`."""

    def __init__(self, client: ClientCore, admin: AdminCore, groups: GroupAdminCore) -> None:
        self._client = client
        self._admin = admin
        self._groups = groups

    async def fetch(self, group: str) -> GroupView:
        """See :meth:`rmqtools.aio.Admin.fetch_group`."""
        connection = await self._groups.fetch_consumer_connection(group)
        members = await asyncio.gather(*(self._member(group, each) for each in connection.connection_set))
        stats = await self._groups.fetch_consume_stats(group)
        topics = {queue.topic for queue in stats.offset_table} | connection.subscription_table.keys()
        topics |= {topic for member in members for topic, _, _ in member.subscriptions}
        progress, missing = await self._progress(group, topics)
        return GroupView(
            group=group,
            message_model=connection.message_model,
            consume_type=connection.consume_type,
            members=tuple(members),
            progress=progress,
            missing_topics=missing,
        )

    async def _member(self, group: str, connection: Connection) -> GroupMember:
        try:
            info = await self._groups.fetch_running_info(group, connection.client_id)
        except RocketMQError as error:
            return silent_member(connection, str(error))
        return member_of(connection, info, self._client.config.namespace)

    async def _progress(
        self, group: str, topics: Collection[str]
    ) -> tuple[dict[MessageQueue, QueueProgress], tuple[str, ...]]:
        """The group's progress on the topics' queues; and the topics that are missing or not readable."""
        progress: dict[MessageQueue, QueueProgress] = {}
        missing: list[str] = []
        for topic in sorted(topics):
            try:
                progress |= await self._topic_progress(group, topic)
            except (TopicNotFoundError, PermissionDeniedError):
                if not topic.startswith(
                    RETRY_GROUP_TOPIC_PREFIX
                ):  # created when a message fails, or by a heartbeat
                    missing.append(topic)
        return progress, tuple(missing)

    async def _topic_progress(self, group: str, topic: str) -> dict[MessageQueue, QueueProgress]:
        offsets = await self._groups.fetch_consumer_offsets(group, topic)
        ends = await asyncio.gather(*(self._admin.max_offset(queue) for queue in offsets))
        return {
            queue: QueueProgress(max_offset=end, consumer_offset=offset)
            for (queue, offset), end in zip(offsets.items(), ends, strict=True)
        }
