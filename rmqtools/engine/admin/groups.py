"""Administration of consumer groups: members, settings, and all information about a group together.

Each broker knows the members that send it heartbeats, so requests go to all masters at the same time, and the
answers are merged.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from rmqtools.engine.admin.group_configs import GroupConfigAdmin
from rmqtools.engine.admin.proxied_members import fetch_proxied_members
from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.engine.reading.read_messages import read_messages
from rmqtools.errors import (
    BrokerError,
    PermissionDeniedError,
    RocketMQError,
    TopicNotFoundError,
)
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import Connection, ConsumerConnection, ConsumeStats, OffsetWrapper, ProducerInfo
from rmqtools.model.group_view import (
    DEFAULT_LIMITS,
    BrokerSubscription,
    DeadLetters,
    GroupLimits,
    GroupMember,
    GroupView,
    QueueProgress,
    UnreadableQueues,
)
from rmqtools.model.names import (
    RETRY_GROUP_TOPIC_PREFIX,
    dlq_topic,
)
from rmqtools.model.queue import MessageQueue, QueueRange, java_order
from rmqtools.model.route import QueueData
from rmqtools.model.running_info import ConsumerRunningInfo
from rmqtools.policy.clocks import ahead
from rmqtools.policy.group_member import member_of, silent_member, with_each_queue
from rmqtools.policy.member_check import silent_queues
from rmqtools.protocol.headers.group import (
    GetAllProducerInfoRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
)
from rmqtools.protocol.headers.offset import GetMaxOffsetRequestHeader, GetMinOffsetRequestHeader
from rmqtools.protocol.headers.topic import GetTopicStatsInfoRequestHeader
from rmqtools.protocol.wire.bodies import (
    parse_consumer_connection,
    parse_consumer_list,
    parse_group_list,
    parse_producers,
    parse_running_info,
    parse_topic_stats,
)
from rmqtools.protocol.wire.command import request

_AT_ONCE = 16  # members asked, or queues read, at the same time
K = TypeVar("K")
T = TypeVar("T")


class GroupAdmin(GroupConfigAdmin):
    """The methods about consumer groups; :class:`rmqtools.aio.Admin` has them all.

    Give group and topic names without the ``namespace`` of the settings: it is added to requests, and removed
    from the topics of answers.
    """

    async def fetch_group(
        self, group: str, *, ages: bool = False, limits: GroupLimits = DEFAULT_LIMITS
    ) -> GroupView:
        """Return everything about a group: members, the queues each says it owns, offsets and lag.

        A member that does not answer has its ``error`` set. Members through a proxy are those whose
        heartbeats of the last minute can be read from the topic of the proxies. A broker that does not answer
        raises; with ``partial`` it is in ``silent_brokers``.

        Args:
            group: its name.
            ages: whether to read the first message not consumed of each queue, for its ``oldest_ms``.
            limits: from when on a member counts as stuck: such members are looked at more closely.
        """
        by_broker = await self._connections(group)
        connection = self._merged(list(by_broker.values()))
        entries = entries_by_member(by_broker)
        reports = await _few(partial(self._member, group), connection.connection_set)
        members = [replace(each, entries=entries.get(each.client_id, {})) for each in reports]
        stats = (await self.fetch_consume_stats(group)).offset_table
        topics = {queue.topic for queue in stats} | connection.subscription_table.keys()
        topics |= {topic for member in members for topic, _, _ in member.subscriptions}
        progress, missing = await self._progress(group, topics, stats)
        if ages:
            progress = await self.fetch_ages(progress)
        view = GroupView(
            group=group,
            message_model=connection.message_model,
            consume_type=connection.consume_type,
            members=tuple(with_each_queue(member, progress.keys()) for member in members),
            progress=progress,
            missing_topics=missing,
            unreadable=await self._unreadable(group, topics - set(missing)),
            dead_letters=await self.fetch_dead_letters(group),
            silent_brokers={name: str(error) for name, error in self._masters.missing.items()},
            broker_subscriptions=tuple(self._broker_subscriptions(by_broker)),
            proxied=await fetch_proxied_members(self._client, self, self._wire(group)),
            clocks=await self._masters.clocks(),
            now_ms=self._client.clock.now_ms(),
        )
        looked = await _few(partial(self._looked_at, view, limits), view.members)
        return replace(view, members=tuple(looked))

    async def fetch_progress(
        self,
        group: str,
        *,
        stats: ConsumeStats | None = None,
        connection: ConsumerConnection | None = None,
    ) -> dict[MessageQueue, QueueProgress]:
        """Return a group's progress on each queue, sorted; cheaper than :meth:`fetch_group`.

        The queues are those that can be read of every topic that members subscribe to, or else that the
        group has an offset for. Where nothing was committed yet, all stored messages count as not consumed.

        Args:
            group: its name.
            stats: the answer of :meth:`fetch_consume_stats`; None: it is fetched.
            connection: the answer of :meth:`fetch_consumer_connection`; None: it is fetched.
        """
        stats = stats or await self.fetch_consume_stats(group)
        connection = connection or await self.fetch_consumer_connection(group)
        topics = connection.subscription_table.keys() | {queue.topic for queue in stats.offset_table}
        progress, _ = await self._progress(group, topics, stats.offset_table)
        return progress

    async def fetch_dead_letters(self, group: str) -> DeadLetters:
        """Return how many dead letters a group has, and when the last one was stored."""
        header = GetTopicStatsInfoRequestHeader(topic=dlq_topic(self._wire(group)))
        answers = await self._masters.invoke_each(header, nothing=ResponseCode.TOPIC_NOT_EXIST)
        tables = [parse_topic_stats(answer.body).offset_table for answer in answers.values()]
        queues = [offsets for table in tables for offsets in table.values()]
        return DeadLetters(
            count=sum(each.max_offset - each.min_offset for each in queues),
            newest_ms=max((each.last_update_timestamp for each in queues), default=0),
        )

    async def fetch_ages(
        self, progress: Mapping[MessageQueue, QueueProgress]
    ) -> dict[MessageQueue, QueueProgress]:
        """Return progress with the ``oldest_ms`` of queues that are behind.

        Reads the first message not consumed of each.

        Args:
            progress: as of :meth:`fetch_progress`.
        """
        turns = asyncio.Semaphore(_AT_ONCE)

        async def oldest(queue: MessageQueue) -> int | None:
            async with turns:
                known = progress[queue]
                return await self._stored_at(queue, known.consumer_offset or 0, known.max_offset)

        behind = [queue for queue, each in progress.items() if each.lag > 0]
        found = await self._masters.each_queue(oldest, behind)
        return {queue: replace(each, oldest_ms=found.get(queue)) for queue, each in progress.items()}

    async def _looked_at(self, view: GroupView, limits: GroupLimits, member: GroupMember) -> GroupMember:
        """Add when the first fetched message was stored, of queues of which the member consumes nothing."""
        silent = silent_queues(view, member, limits)
        found = await self._masters.each_queue(partial(self._stored_in, silent), silent)
        known = {queue: stored_ms for queue, stored_ms in found.items() if stored_ms is not None}
        return replace(member, fetched_ms=known)

    async def _stored_in(self, ranges: Mapping[MessageQueue, range], queue: MessageQueue) -> int | None:
        with suppress(RocketMQError):  # not known: its topic is deleted, for example
            return await self._stored_at(queue, ranges[queue].start, ranges[queue].stop)
        return None

    async def _stored_at(self, queue: MessageQueue, offset: int, end: int) -> int | None:
        """Return the time of the message at an offset, of the first one stored if that has expired."""
        begin = max(offset, await self.min_offset(queue))
        if begin >= end:
            return None
        read = read_messages(
            self._client,
            QueueRange(queue, begin, begin + 1),
            max_messages=1,
            max_bytes=1,
            fail_on_data_loss=False,
            corrupt_body="raw",
        )
        return next(
            (one.store_timestamp_ms for messages in [m async for m in read] for one in messages), None
        )

    async def fetch_topic_groups(self, topic: str) -> list[str]:
        """Return the groups that have members subscribed to a topic, or offsets of it, sorted."""
        header = QueryTopicConsumeByWhoRequestHeader(topic=self._wire(topic))
        answers = (await self._masters.invoke_each(header)).values()
        return sorted(self._ours({name for answer in answers for name in parse_group_list(answer.body)}))

    async def fetch_consumer_connection(self, group: str) -> ConsumerConnection:
        """Return the members of a group and their subscriptions, collected from all brokers.

        Brokers know a member at the latest 30 s after its start, and for 2 minutes after it was killed.

        Returns:
            Members by client id, each once; no members if no broker knows one.
        """
        return self._merged(list((await self._connections(group)).values()))

    async def _connections(self, group: str) -> dict[str, ConsumerConnection]:
        """Return the members of a group as each broker that knows one lists them."""
        header = GetConsumerConnectionListRequestHeader(consumer_group=self._wire(group))
        answers = await self._masters.invoke_each(header, nothing=ResponseCode.CONSUMER_NOT_ONLINE)
        return {
            name: await parse_aside(parse_consumer_connection, answer.body)
            for name, answer in answers.items()
        }

    def _broker_subscriptions(
        self, by_broker: Mapping[str, ConsumerConnection]
    ) -> Iterator[BrokerSubscription]:
        for name, answer in by_broker.items():
            for topic, data in answer.subscription_table.items():
                if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                    subscription = (self._bare(topic), data.sub_string, data.expression_type)
                    yield BrokerSubscription(
                        broker_name=name, subscription=subscription, sub_version=data.sub_version
                    )

    def _merged(self, answers: Sequence[ConsumerConnection]) -> ConsumerConnection:
        merged = merge_connections(answers)
        table = {self._bare(topic): data for topic, data in merged.subscription_table.items()}
        bare = {topic: replace(data, topic=topic) for topic, data in table.items()}
        return replace(merged, subscription_table=bare)

    async def fetch_consumer_ids(self, group: str) -> list[str]:
        """Return the client ids of a group's members, collected from all brokers, in Java's order."""
        header = GetConsumerListByGroupRequestHeader(consumer_group=self._wire(group))
        # SYSTEM_ERROR: "no consumer for ..."
        answers = await self._masters.invoke_each(header, nothing=ResponseCode.SYSTEM_ERROR)
        ids = {
            client_id
            for answer in answers.values()
            for client_id in await parse_aside(parse_consumer_list, answer.body)
        }
        return sorted(ids, key=java_order)

    async def fetch_producers(self) -> dict[str, tuple[ProducerInfo, ...]]:
        """Return the producers that brokers know, by producer group; each once, by client id.

        A broker knows a producer that has sent to it, from its heartbeat until its connection ends. It does
        not know to which topics: ``MessageExt.born_host`` shows where messages came from.
        """
        answers = await self._masters.invoke_each(GetAllProducerInfoRequestHeader())
        found: defaultdict[str, dict[str, ProducerInfo]] = defaultdict(dict)
        for answer in answers.values():
            for group, infos in (await parse_aside(parse_producers, answer.body)).items():
                found[self._bare(group)] |= {each.client_id: each for each in infos}
        return {group: tuple(found[group].values()) for group in sorted(found)}

    async def fetch_running_info(
        self, group: str, client_id: str, *, stacks: bool = False
    ) -> ConsumerRunningInfo:
        """Return a member's own report: settings, subscriptions, queues. Its broker forwards the request.

        Args:
            group: its group.
            client_id: its client id.
            stacks: also, as ``jstack``, the stacks of all threads of its process; a member of rmqtools
                adds the tasks of its event loop.

        Raises:
            BrokerError: no broker has a connection to the member, or the member did not answer the broker.
            RemotingTimeoutError: no answer within ``request_timeout``; a broker gives a member 10 s.
        """
        header = GetConsumerRunningInfoRequestHeader(
            consumer_group=self._wire(group), client_id=client_id, jstack_enable=stacks
        )
        refusals: list[BrokerError] = []
        for name, addr in (await self._masters.readers()).items():
            if name in self._masters.missing:
                continue
            try:
                answer = await self._client.remoting.invoke_ok(addr, request(header))
            except BrokerError as error:
                refusals.append(error)  # it may not know the member, or may have lost its connection
                continue
            return await parse_aside(parse_running_info, answer.body)
        if not refusals:
            raise BrokerError(ResponseCode.CONSUMER_NOT_ONLINE, "no broker is there to ask", "nobody")
        asked, last = ", ".join(refusal.addr for refusal in refusals), refusals[-1]
        raise BrokerError(last.code, f"{last.remark} (asked: {asked})", last.addr)

    async def _member(self, group: str, connection: Connection) -> GroupMember:
        clock = self._client.clock
        asked_ms = clock.now_ms()
        try:
            info = await self.fetch_running_info(group, connection.client_id)
        except RocketMQError as error:
            return silent_member(connection, str(error))
        member = member_of(connection, info, self._client.config.namespace)
        own_ms = member.now_ms or asked_ms
        return replace(member, clock=ahead(own_ms, own_ms, asked_ms, clock.now_ms()))

    async def _progress(
        self, group: str, topics: Collection[str], stats: Mapping[MessageQueue, OffsetWrapper]
    ) -> tuple[dict[MessageQueue, QueueProgress], tuple[str, ...]]:
        """Return the group's progress on the queues that can be read, and the topics without a route."""
        progress: dict[MessageQueue, QueueProgress] = {}
        missing: list[str] = []
        for topic in sorted(topics):
            try:
                queues = await self.fetch_subscribe_queues(topic)
                progress |= await self._progress_of(group, queues, stats)
            except PermissionDeniedError:
                pass  # no queue of it can be read: see _unreadable
            except TopicNotFoundError:
                # a retry topic is created when a message fails, or by a heartbeat
                if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                    missing.append(topic)
        return progress, tuple(missing)

    async def _progress_of(
        self, group: str, queues: Sequence[MessageQueue], stats: Mapping[MessageQueue, OffsetWrapper]
    ) -> dict[MessageQueue, QueueProgress]:
        """Take the progress from the brokers' statistics, and ask for that of the other queues.

        Statistics have 0 also where nothing was committed, and lack topics of which the group has consumed
        nothing on that broker.
        """
        known = {
            queue: QueueProgress(max_offset=each.broker_offset, consumer_offset=each.consumer_offset)
            for queue in queues
            if (each := stats.get(queue)) is not None and each.consumer_offset
        }
        asked = await self._masters.each_queue(
            partial(self._asked_progress, group), [queue for queue in queues if queue not in known]
        )
        return {queue: (known | asked)[queue] for queue in queues if queue in known or queue in asked}

    async def _asked_progress(self, group: str, queue: MessageQueue) -> QueueProgress:
        offset = await self._fetch_consumer_offset(group, queue)
        end = await self._bound(GetMaxOffsetRequestHeader, queue, or_slave=True)
        first = 0 if offset else await self._bound(GetMinOffsetRequestHeader, queue, or_slave=True)
        return QueueProgress(max_offset=end, consumer_offset=offset, min_offset=first)

    async def _unreadable(self, group: str, topics: Set[str]) -> tuple[UnreadableQueues, ...]:
        """Return queues of the topics that take messages and are not read, broker by broker.

        The routes are those that :meth:`_progress` has just fetched; a retry topic can have none.
        """
        routes = self._client.routes.tables.routes
        found: list[UnreadableQueues] = []
        for topic in sorted(topics & routes.keys()):
            found += unreadable_queues(topic, routes[topic].queue_datas)
        found += await self._unreadable_retries(group)
        return tuple([replace(one, messages=await self._messages_in(one)) for one in found])

    async def _messages_in(self, hidden: UnreadableQueues) -> int | None:
        queues = [
            MessageQueue(hidden.topic, hidden.broker_name, number)
            for number in range(hidden.readable, hidden.written)
        ]
        try:
            ends = await asyncio.gather(*map(self.max_offset, queues))
            starts = await asyncio.gather(*map(self.min_offset, queues))
        except RocketMQError:
            return None
        return sum(ends) - sum(starts)


async def _few(call: Callable[[K], Awaitable[T]], things: Iterable[K]) -> list[T]:
    """Await ``call`` of all things, a few at a time; the results are in their order."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def in_turn(thing: K) -> T:
        async with turns:
            return await call(thing)

    return await asyncio.gather(*map(in_turn, things))


def entries_by_member(
    by_broker: Mapping[str, ConsumerConnection],
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the addresses of each member, by client id and broker name."""
    found: defaultdict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for broker_name, answer in by_broker.items():
        for one in answer.connection_set:
            known = found[one.client_id].get(broker_name, ())
            found[one.client_id][broker_name] = (*known, one.client_addr)
    return dict(found)


def unreadable_queues(topic: str, queue_datas: Sequence[QueueData]) -> list[UnreadableQueues]:
    """Return the brokers on which a topic has fewer queues that are read than that are written.

    A broker that allows neither counts if no broker lets the topic be read.
    """
    is_closed = not any(data.is_readable for data in queue_datas)
    return [
        UnreadableQueues(
            topic=topic,
            broker_name=data.broker_name,
            readable=data.read_queue_nums if data.is_readable else 0,
            written=data.write_queue_nums,
        )
        for data in queue_datas
        if (data.is_writable or is_closed)
        and data.write_queue_nums > (data.read_queue_nums if data.is_readable else 0)
    ]


def merge_connections(answers: Sequence[ConsumerConnection]) -> ConsumerConnection:
    """Merge the members that several brokers know: each once, by client id.

    A member has a connection to each broker; its address is that of one of them.
    """
    members: dict[str, Connection] = {}
    merged = ConsumerConnection()
    for answer in answers:
        members |= {member.client_id: member for member in answer.connection_set}
        merged = replace(
            answer, subscription_table={**merged.subscription_table, **answer.subscription_table}
        )
    ordered = sorted(members, key=java_order)
    return replace(merged, connection_set=tuple(members[client_id] for client_id in ordered))
