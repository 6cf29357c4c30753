"""A mirror: copies topics to another cluster, or to other topics, each message once and in order."""

import asyncio
from contextlib import AsyncExitStack

from rmqtools.config.client import check_config
from rmqtools.config.mirror import MirrorConfig
from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin
from rmqtools.engine.admin.groups import GroupAdmin
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.blocking_form import CLOSE_NOTE, START_NOTE, blocking
from rmqtools.engine.exact.appender import ExactAppender
from rmqtools.engine.exact.copy_lane import run_all
from rmqtools.engine.exact.mirror_lane import MirrorLane
from rmqtools.engine.exact.move_group import find_copy
from rmqtools.engine.exact.target_checks import check_producer
from rmqtools.engine.producer.producer import Producer
from rmqtools.engine.reading.client import Client
from rmqtools.errors import BrokerError, ClientStateError, ConfigError
from rmqtools.model.mirror import MovedOffset, Place, QueueMirror
from rmqtools.model.names import is_system_topic
from rmqtools.model.queue import MessageQueue
from rmqtools.model.route import ClusterInfo
from rmqtools.policy.endpoint.features import EXACT_APPENDS
from rmqtools.policy.flow import MessageRate
from rmqtools.policy.mirror import Way, pair_queues

_FOLLOW_PAUSE = 0.5  # seconds between looks for new messages


class Mirror(Asynchronous):
    """Copies topics to another cluster, or to other topics: each message is stored once, in its order.

    Bodies, tags, keys, properties and the order of each queue are kept; a copy has two more properties, for
    its origin and its way. A mirror that was killed continues where it stopped, without a store of its own.
    Use ``async with``, or call start and close. New in 0.3.0.

    Raises:
        ConfigError: by the constructor, for settings that are not valid.
    """

    __module__ = "rmqtools.aio"

    def __init__(self, config: MirrorConfig) -> None:
        check_config(type(self).__name__, config, MirrorConfig)
        check_producer(config.target)
        self._config = config
        self._source, self._target = Client(config.source), Producer(config.target)
        self._open = AsyncExitStack()
        self._lanes: list[MirrorLane] = []
        self._pairs: list[tuple[MessageQueue, MessageQueue]] = []
        self._names = ("", "")  # of the source cluster, of the target cluster
        limit = config.max_messages_per_second
        self._rate = None if limit is None else MessageRate(limit)
        self._is_running = False

    @blocking("base", note=START_NOTE)
    async def start(self) -> None:
        """Connect to both clusters, and compare the topics. Writes nothing.

        Raises:
            ConfigError: a topic that cannot be copied, or clusters of the same name; names the remedy.
            TopicNotFoundError, PermissionDeniedError: a topic does not exist, or may not be used.
            UnsupportedError: a cluster is behind a proxy.
        """
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(self._source)
            await opened.enter_async_context(self._target)
            self._names = await self._cluster_names()
            for source, target in self._config.topics.items():
                self._check_topics(source, target)
                self._pairs += await self._pair(source, target)
            self._open = opened.pop_all()

    @blocking("base", note=CLOSE_NOTE)
    async def close(self) -> None:
        """Stop copying, and close the connections."""
        await self._open.aclose()

    @blocking("direct")
    def progress(self) -> list[QueueMirror]:
        """Return the progress of each queue; empty before the first :meth:`run`."""
        return [lane.state for lane in self._lanes]

    async def run(self, *, follow: bool = False, until_ms: int | None = None) -> list[QueueMirror]:
        """Copy all messages that are stored now, and return the progress of each queue.

        Args:
            follow: go on with new messages, until the call is cancelled.
            until_ms: copy messages stored before this time, in ms since 1970; waits until then.

        Raises:
            ConfigError: a target whose end cannot be trusted; see :meth:`rmqtools.aio.ExactAppender.resume`.
            ExactAppendError: another mirror of this name is running, or the target's marks contradict it.
            DataLossError: messages expired at the source before they were copied.
            SendError: the target refuses a message.
        """
        if not self._pairs:
            raise ClientStateError("the mirror is not started: call start() or use it in a with block")
        if self._is_running:
            raise ClientStateError("the mirror is running already: it has one run at a time")
        self._is_running = True
        try:
            if not self._lanes:
                self._lanes = [self._lane(*pair) for pair in self._pairs]
                for lane in self._lanes:
                    self._open.push_async_callback(lane.close)
            await run_all(*(self._run_lane(lane, follow, until_ms) for lane in self._lanes))
        finally:
            self._is_running = False
        return self.progress()

    async def move_group(self, group: str, *, dry_run: bool = False) -> list[MovedOffset]:
        """Set a group's offsets on the copies to the messages that it would consume next at the source.

        Args:
            group: a group without members at the target.
            dry_run: only return the new offsets.

        Returns:
            Each queue in which the group has an offset, with the new offset. If the next message is not
            copied yet, this is the end of the copy: messages that are copied later may be consumed again.

        Raises:
            ConfigError: the group has members at the target: they would overwrite the offsets.
        """
        source = GroupOffsetAdmin(self._source._client)
        target = GroupOffsetAdmin(self._target._client)
        moved = []
        for topic in self._config.topics:
            offsets = await source.fetch_consumer_offsets(group, topic)
            for queue, twin in (pair for pair in self._pairs if pair[0].topic == topic):
                offset = offsets.get(queue)
                if offset is not None:
                    found = await find_copy(
                        self._target._client, twin, self._writer, self._origin(queue), offset
                    )
                    moved.append(
                        MovedOffset(source=queue, source_offset=offset, target=twin, target_offset=found)
                    )
        if not dry_run:
            await self._check_no_members(group)
            for each in moved:
                await target.update_consumer_offset(group, each.target, each.target_offset)
        return moved

    @property
    def _writer(self) -> str:
        return self._config.name or "".join(
            char if char.isascii() and (char.isalnum() or char in "_-") else "_" for char in self._names[0]
        )

    def _origin(self, queue: MessageQueue) -> str:
        return f"{Place(self._names[0], queue.topic)}/{queue.broker_name}/{queue.queue_id}"

    def _lane(self, source: MessageQueue, target: MessageQueue) -> MirrorLane:
        config = self._config
        appender = ExactAppender(
            self._target,
            target,
            writer=self._writer,
            origin=self._origin(source),
            settle_seconds=config.settle_seconds,
            is_new=config.is_new,
        )
        way = Way(Place(self._names[0], source.topic), Place(self._names[1], target.topic))
        return MirrorLane(self._source._client, source, appender, way, config, self._rate)

    async def _run_lane(self, lane: MirrorLane, follow: bool, until_ms: int | None) -> None:
        await lane.open()
        clock = self._source._client.clock
        while True:
            is_last = not follow if until_ms is None else clock.now_ms() > until_ms
            await lane.copy_to(await lane.end(until_ms if is_last else None))
            if is_last:
                return
            await asyncio.sleep(_FOLLOW_PAUSE)

    async def _pair(self, source: str, target: str) -> list[tuple[MessageQueue, MessageQueue]]:
        from_, to = self._source._client, self._target._client
        for client, topic in ((from_, source), (to, target)):
            await client.routes.refresh(topic)
            client.endpoint.require(EXACT_APPENDS)
        queues = await from_.routes.subscribe_queues(source)
        return pair_queues(queues, (await to.routes.publish_info(target)).queues)

    def _check_topics(self, source: str, target: str) -> None:
        for topic in (source, target):
            if is_system_topic(topic):
                raise ConfigError(f"topic {topic!r} is RocketMQ's own: a mirror copies topics of users")
        if self._names[0] == self._names[1] and source == target:
            raise ConfigError(f"topic {source!r} would be copied to itself: name another topic or cluster")

    async def _cluster_names(self) -> tuple[str, str]:
        """Return the names of both clusters; the same name twice means the same cluster."""
        clients = (self._source._client, self._target._client)
        from_, to = [await client.name_server.fetch_cluster_info() for client in clients]
        is_same = bool(_addresses(from_) & _addresses(to))
        source = self._config.source_name or _only_name(from_, "source_name")
        target = self._config.target_name or (source if is_same else _only_name(to, "target_name"))
        if source == target and not is_same:
            raise ConfigError(
                f"both clusters have the name {source!r}, by which a message's way is noted: give "
                "source_name and target_name, the same ones to all mirrors"
            )
        if source != target and is_same:
            raise ConfigError(
                f"{source!r} and {target!r} are the same cluster: give it one name, and another target topic"
            )
        return source, target

    async def _check_no_members(self, group: str) -> None:
        """Refuse a group with members at the target."""
        try:
            members = await GroupAdmin(self._target._client).fetch_consumer_ids(group)
        except BrokerError:  # brokers refuse to list the members of a group that has none
            return
        if members:
            raise ConfigError(
                f"group {group!r} has {len(members)} members at the target, which would overwrite its "
                "offsets: stop them first"
            )


def _only_name(info: ClusterInfo, setting: str) -> str:
    """Return the name of the one cluster that a name server knows."""
    names = sorted(info.cluster_addr_table)
    if len(names) != 1:
        raise ConfigError(f"the name server knows the clusters {', '.join(names) or 'none'}: give {setting}")
    return names[0]


def _addresses(info: ClusterInfo) -> set[str]:
    return {addr for data in info.broker_addr_table.values() for addr in data.broker_addrs.values()}
