"""A mirror: copies topics to another cluster, or to other topics, each message once and in order."""

import asyncio
from asyncio import FIRST_EXCEPTION
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace

from rmqtools.config.client import check_config
from rmqtools.config.mirror import MirrorConfig
from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin
from rmqtools.engine.asynchronous import Asynchronous
from rmqtools.engine.blocking_form import CLOSE_NOTE, START_NOTE, blocking
from rmqtools.engine.exact.awaiting import until_there
from rmqtools.engine.exact.copy_lane import end_all
from rmqtools.engine.exact.mirror_lane import MirrorLane
from rmqtools.engine.exact.move_group import check_no_members, check_retries, find_place
from rmqtools.engine.exact.queue_writer import QueueWriter
from rmqtools.engine.exact.tail import FROM, LAST, WriterMemory
from rmqtools.engine.exact.target_checks import check_producer
from rmqtools.engine.producer.producer import Producer
from rmqtools.engine.reading.client import Client
from rmqtools.errors import (
    ClientStateError,
    ConfigError,
    PermissionDeniedError,
    RemotingError,
    RocketMQError,
    TopicNotFoundError,
)
from rmqtools.log import get_logger
from rmqtools.model.mirror import MovedOffset, Place, QueueMirror
from rmqtools.model.names import is_system_topic
from rmqtools.model.queue import MessageQueue
from rmqtools.number_of import number_of
from rmqtools.policy.endpoint.features import EXACT_APPENDS
from rmqtools.policy.flow import MessageRate
from rmqtools.policy.mirror import (
    Pair,
    Pairing,
    Way,
    cluster_names,
    decode_pair,
    key_of_place,
    pair_queues,
)

log = get_logger(__name__)

_PAIR_PAUSE = 5.0  # seconds between looks for queues that are new, or not there
_UNKNOWN = "?"  # broker of a queue that is not there
_AWAY = "a broker is down, or the topic has fewer queues than before"


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
        self._lanes: dict[MessageQueue, MirrorLane] = {}  # by source queue
        self._waiting: dict[str, list[QueueMirror]] = {}  # queues without a lane, by topic
        self._names = ("", "")  # of the source cluster, of the target cluster
        limit = config.max_messages_per_second
        self._rate = None if limit is None else MessageRate(limit)
        self._is_started = self._is_running = False

    def _shown(self) -> Mapping[str, str]:
        source, target = self._source._shown(), self._target._shown()
        return {
            "source": source["name_server"],
            "target": target["name_server"],
            "state": target["state"],
        }

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
            infos = [
                await each._client.name_server.fetch_cluster_info() for each in (self._source, self._target)
            ]
            names = self._config.source_name, self._config.target_name
            self._names = cluster_names(*infos, source_name=names[0], target_name=names[1])
            for source, target in self._config.topics.items():
                self._check_topics(source, target)
                with suppress(RemotingError):  # run() waits for brokers
                    await self._fetch_pairing(source)
            if self._config.refused not in ("stop", "skip"):
                await self._target._client.routes.publish_info(self._config.refused)
            self._open, self._is_started = opened.pop_all(), True

    @blocking("base", note=CLOSE_NOTE)
    async def close(self) -> None:
        """Stop copying, and close the connections."""
        await self._open.aclose()

    @blocking("direct")
    def progress(self) -> list[QueueMirror]:
        """Return the progress of each queue; empty before the first :meth:`run`."""
        return [lane.state for lane in self._lanes.values()] + [
            each for states in self._waiting.values() for each in states
        ]

    async def run(self, *, follow: bool = False, until_ms: int | None = None) -> list[QueueMirror]:
        """Copy all messages that are stored now, and return the progress of each queue.

        Waits for queues that were copied before and are not there, because a broker is down. An error stops
        the queues of its topic; it is raised when the other topics are copied.

        Args:
            follow: go on with new messages, and with queues that are added, until the call is cancelled.
            until_ms: copy messages stored before this time, in ms since 1970, by the clocks of the source's
                brokers; waits until then.

        Raises:
            ConfigError: a target whose end cannot be trusted (see :meth:`rmqtools.aio.ExactAppender.resume`),
                or topics without as many queues.
            ExactAppendError: another mirror of this name is running, or the target's marks contradict it.
            DataLossError: messages expired at the source before they were copied, or its topic was deleted
                and made again, or its broker has lost its end.
            SendError: the target refuses a message; see ``refused`` of :class:`rmqtools.MirrorConfig`.
        """
        if not self._is_started:
            raise ClientStateError("the mirror is not started: call start() or use it in a with block")
        if self._is_running:
            raise ClientStateError("the mirror is running already: it has one run at a time")
        self._is_running = True
        try:
            works = [self._run_topic(topic, follow, until_ms) for topic in self._config.topics]
            tasks = [asyncio.create_task(work) for work in works]
            errors = [error for error in await asyncio.gather(*tasks) if error is not None]
        finally:
            await end_all(tasks)
            self._is_running = False
        if errors:
            raise errors[0]
        return self.progress()

    async def _run_topic(self, topic: str, follow: bool, until_ms: int | None) -> RocketMQError | None:
        """Copy a topic; return the error that has stopped it, which does not stop the others."""
        try:
            await self._copy_topic(topic, follow, until_ms)
        except RocketMQError as error:
            log.error("mirror_stopped", topic=topic, reason=str(error))
            for lane in self._lanes_of(topic):
                lane.state = replace(lane.state, error=str(error))
            return error
        return None

    async def _copy_topic(self, topic: str, follow: bool, until_ms: int | None) -> None:
        """Copy all queues of a topic; look again and again for queues that are not there, or are new."""
        tasks: dict[MessageQueue, asyncio.Task[None]] = {}
        try:
            while True:
                pairing = await self._pairing(topic, follow=follow)
                for source, target in pairing.pairs.items():
                    lane = self._lane(source, target)
                    lane.note_width(pairing.width)
                    if source not in tasks:
                        tasks[source] = asyncio.create_task(lane.run(follow=follow, until_ms=until_ms))
                if tasks:
                    await asyncio.wait(tasks.values(), timeout=_PAIR_PAUSE, return_when=FIRST_EXCEPTION)
                done = [task.result() for task in tasks.values() if task.done()]
                if len(done) == len(tasks):
                    if pairing.is_complete and not follow:
                        return
                    await asyncio.sleep(_PAIR_PAUSE)
        finally:
            await end_all(tasks.values())

    async def _pairing(self, topic: str, *, follow: bool) -> Pairing:
        """Return the pairs of a topic, and note those that wait; waits while no name server answers."""

        async def is_away(error: RocketMQError) -> bool:
            is_missing = isinstance(error, (TopicNotFoundError, PermissionDeniedError))
            return isinstance(error, RemotingError) or (is_missing and bool(self._lanes_of(topic)))

        pairing = await until_there(
            lambda: self._fetch_pairing(topic),
            is_away,
            event="routes_awaited",
            pause=_PAIR_PAUSE,
            topic=topic,
        )
        if pairing.unpaired and not pairing.lost and not follow:
            raise ConfigError(
                f"topic {topic!r} has {number_of(len(pairing.unpaired), 'queue')} for which the target's "
                f"{self._config.topics[topic]!r} has none that is free: a queue has copies of one queue "
                "only, so give it more (rmqtools topic alter); to copy another topic to it, name the mirror "
                "otherwise"
            )
        waiting = [
            QueueMirror(
                source=MessageQueue(topic, _UNKNOWN, 0),
                target=target,
                waits_for=f"its source queue: {_AWAY}",
            )
            for target in pairing.awaited
        ]
        reason = f"a queue of the target: {_AWAY}" if pairing.lost else "a queue of the target: add one"
        nowhere = MessageQueue(self._config.topics[topic], _UNKNOWN, 0)
        waiting += [
            QueueMirror(source=source, target=nowhere, waits_for=reason) for source in pairing.unpaired
        ]
        if waiting and waiting != self._waiting.get(topic):
            log.warning("queues_awaited", topic=topic, queues=len(waiting), reason=waiting[0].waits_for)
        self._waiting[topic] = waiting
        return pairing

    async def _fetch_pairing(self, topic: str) -> Pairing:
        """Return the pairs of a topic as brokers have them."""
        from_ = self._source._client
        to = self._target._client
        copy = self._config.topics[topic]
        await to.routes.refresh(copy)
        to.endpoint.require(EXACT_APPENDS)
        targets = (await to.routes.publish_info(copy)).queues
        recorded = await self._recorded(targets)
        try:
            await from_.routes.refresh(topic)
            from_.endpoint.require(EXACT_APPENDS)
            sources = await from_.routes.subscribe_queues(topic)
        except TopicNotFoundError:  # its only broker is down
            if not recorded:
                raise
            sources = []
        return pair_queues(sources, targets, recorded)

    async def _recorded(self, targets: Sequence[MessageQueue]) -> dict[MessageQueue, Pair]:
        """Return the records of target queues."""
        known = {lane.state.target: lane.pair for lane in self._lanes.values()}
        others = [queue for queue in targets if queue not in known]
        found = dict(zip(others, await asyncio.gather(*map(self._fetch_pair, others)), strict=True))
        return {
            queue: pair for queue in targets if (pair := known.get(queue) or found.get(queue)) is not None
        }

    async def _fetch_pair(self, queue: MessageQueue) -> Pair | None:
        """Return the record of a target queue; None: there is none.

        A mirror of 0.3.0 has made no record: the mark of its last message names the source.
        """
        memory = WriterMemory(self._target._client, queue, self._writer)
        if (record := await memory.fetch(FROM)) is not None:
            return decode_pair(record)
        last = await memory.fetch(LAST)
        mark = None if last is None else await memory.last_mark(last)
        return None if mark is None else Pair(key_of_place(mark.origin.partition("/")[2]), 0)

    def _lanes_of(self, topic: str) -> list[MirrorLane]:
        return [lane for source, lane in self._lanes.items() if source.topic == topic]

    async def move_group(self, group: str, *, dry_run: bool = False) -> list[MovedOffset]:
        """Set a group's offsets on the copies, so that it goes on where it is at the source.

        Args:
            group: a group without members at the target.
            dry_run: only return the new offsets.

        Returns:
            Each queue in which the group has an offset, with the new offset: behind the last copy that it has
            consumed. Messages of other producers behind it are consumed, too.

        Raises:
            ConfigError: a copy is not as far as the group, or how far is not known; failed messages wait in
                the group's retry topic; or the group has members at the target, which would overwrite the
                offsets.
            BrokerError: a broker does not list the group's members.
        """
        from_ = self._source._client
        to = self._target._client
        topics = self._config.topics
        moved = []
        for topic in topics:
            offsets = await GroupOffsetAdmin(from_).fetch_consumer_offsets(group, topic)
            pairs = (await self._fetch_pairing(topic)).pairs
            for queue, offset in offsets.items():
                if offset is None:
                    continue
                if (twin := pairs.get(queue)) is None:
                    raise ConfigError(f"{queue} has no copy so far: run the mirror until it has no lag")
                memory = WriterMemory(to, twin, self._writer)
                found = await find_place(memory, self._origin(queue), offset)
                moved.append(
                    MovedOffset(source=queue, source_offset=offset, target=twin, target_offset=found)
                )
        await check_retries(from_, group, topics)
        await check_no_members(to, group)
        if not dry_run:
            for each in moved:
                await GroupOffsetAdmin(to).update_consumer_offset(group, each.target, each.target_offset)
        return moved

    @property
    def _writer(self) -> str:
        return self._config.name or "".join(
            char if char.isascii() and (char.isalnum() or char in "_-") else "_" for char in self._names[0]
        )

    def _origin(self, queue: MessageQueue) -> str:
        return f"{Place(self._names[0], queue.topic)}/{queue.broker_name}/{queue.queue_id}"

    def _lane(self, source: MessageQueue, target: MessageQueue) -> MirrorLane:
        """Return the lane of a queue; it stays open until the mirror is closed."""
        if source not in self._lanes:
            config = self._config
            writer = QueueWriter(
                self._target,
                target,
                writer=self._writer,
                origin=self._origin(source),
                settle_seconds=config.settle_seconds,
                is_new=config.is_new,
            )
            way = Way(Place(self._names[0], source.topic), Place(self._names[1], target.topic))
            lane = MirrorLane(self._source._client, source, writer, way, config, self._rate, self._target)
            self._open.push_async_callback(writer.close)
            self._lanes[source] = lane
        return self._lanes[source]

    def _check_topics(self, source: str, target: str) -> None:
        for topic in (source, target):
            if is_system_topic(topic):
                raise ConfigError(f"topic {topic!r} is RocketMQ's own: a mirror copies topics of users")
        if self._names[0] == self._names[1] and source == target:
            raise ConfigError(f"topic {source!r} would be copied to itself: name another topic or cluster")
