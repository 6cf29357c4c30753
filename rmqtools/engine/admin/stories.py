"""Administration: collects what brokers have about one message: stored copies, trace records, offsets.

Source of the rules: QueryMsgTraceByIdSubCommand (Java tools) for the trace topic; ours for the rest.
"""

import asyncio
from collections.abc import Sequence

from rmqtools.engine.admin.messages import MessageAdmin
from rmqtools.errors import (
    ConfigError,
    MessageRejectedError,
    ProtocolError,
    RocketMQError,
    TopicNotFoundError,
    UnsupportedError,
)
from rmqtools.model.group import Connection
from rmqtools.model.group_view import MessageTrack
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_RETRY_TOPIC
from rmqtools.model.message_story import MessageStory
from rmqtools.model.names import DELAY_TOPICS, dlq_topic, retry_topic
from rmqtools.model.trace import PubTrace, SubAfterTrace, SubBeforeTrace
from rmqtools.policy.message_story import FoundTrace, StoryFacts, join_story
from rmqtools.protocol.headers.pop_extra_info import RETRY_TOPIC, RETRY_TOPIC_V2, real_topic
from rmqtools.protocol.headers.pull import QueryMessageRequestHeader
from rmqtools.protocol.messages.message_id import parse_id_process, parse_offset_msg_id
from rmqtools.protocol.messages.trace import parse_traces

_AT_ONCE = 16  # topics that are asked at the same time
_Identity = tuple[str, str]
"""The topic and the unique key of a message."""


class StoryAdmin(MessageAdmin):
    """The method about a message's life; :class:`rmqtools.aio.Admin` has it."""

    async def fetch_message_stories(
        self,
        key: str,
        *,
        topic: str | None = None,
        trace_topic: str = "RMQ_SYS_TRACE_TOPIC",
        max_num: int = 8,
    ) -> list[MessageStory]:
        """Return the lives of the messages with a key: sends, copies, deliveries, retries, dead letters.

        Stored copies come from the brokers' key index, in the message's topic, in its groups' retry and
        dead-letter topics and in the topics of delays. Sends and deliveries come from the trace topic: only
        clients with ``enable_trace`` write them. What is not known is listed in each story.

        Args:
            key: a unique key (``msg_id``), an offset message id, or one of the keys of a message.
            topic: the topic; None: as a trace record of the producer says, or the offset message id.
            trace_topic: topic of the trace records.
            max_num: the most messages to return.

        Returns:
            The stories, those of older messages first; none if there is neither a message nor a record.

        Raises:
            ConfigError: the topic is not given, and records that should have it are missing or cannot be
                read; or ``max_num`` is less than 1.
            MessageRejectedError: the key is empty.
            TopicNotFoundError: there is no such topic.
            UnsupportedError: a proxy, which cannot look up messages.
        """
        if not key:
            raise MessageRejectedError(
                f"key={key!r}: want a unique key, an offset message id or a message's key"
            )
        if max_num < 1:
            raise ConfigError(f"max_num={max_num}: want 1 or more")
        identities = await self._identities(key, topic, trace_topic, max_num)
        return [await self._story(*identity, trace_topic) for identity in identities]

    async def _identities(
        self, key: str, topic: str | None, trace_topic: str, max_num: int
    ) -> Sequence[_Identity]:
        """Find the messages that a key means."""
        if topic is not None:
            for unique in (True, False):
                found = await self.query_messages(topic, key, unique=unique, max_num=max_num)
                if found:
                    return [*dict.fromkeys((topic, message.msg_id) for message in found)]
        if (message := await self._at_offset(key)) is not None:
            real = message.properties.get(PROPERTY_RETRY_TOPIC, message.topic)
            return [(self._bare(real), message.msg_id)]
        gaps: list[str] = []
        records = [found.record for found in await self._traces(key, trace_topic, gaps)]
        sent = [one for one in records if isinstance(one, PubTrace) and key in (one.msg_id, *_keys(one))]
        known = dict.fromkeys((one.topic, one.msg_id) for one in sent if topic in (None, one.topic))
        is_traced = any(one.msg_id == key for one in records)
        if topic is None and not known and (gaps or is_traced):
            reason = gaps[0] if gaps else "no trace record of its producer was found"
            raise ConfigError(f"the topic of message {key!r} is not known: {reason}: give topic")
        return list(known)[:max_num] or ([(topic, key)] if topic is not None and is_traced else [])

    async def _at_offset(self, key: str) -> MessageExt | None:
        """Return the message of an offset message id; None: it is no such id (unique keys look alike)."""
        try:
            addr, _ = parse_offset_msg_id(key)
            return await self.view_message(key) if await self._broker_name(addr) else None
        except RocketMQError:
            return None

    async def _story(self, topic: str, msg_id: str, trace_topic: str) -> MessageStory:
        gaps: list[str] = []
        traces = await self._traces(msg_id, trace_topic, gaps)
        traces = [found for found in traces if found.record.msg_id == msg_id]
        readers = await self._readers(topic, gaps)
        named = {
            found.record.group
            for found in traces
            if isinstance(found.record, (SubBeforeTrace, SubAfterTrace))
        }
        groups = sorted({*readers, *(name for name in named if name)})
        retry_topics = {group: self._retry_topics(topic, group) for group in groups}
        wanted = [self._wire(topic), *DELAY_TOPICS]
        wanted += [name for group in groups for name in (*retry_topics[group], dlq_topic(self._wire(group)))]
        copies: list[MessageExt] = []
        for start in range(0, len(wanted), _AT_ONCE):
            asked = [self._copies(name, msg_id, gaps) for name in wanted[start : start + _AT_ONCE]]
            copies += [message for found in await asyncio.gather(*asked) for message in found]
        original = next((copy for copy in copies if copy.topic == topic), None)
        tracks: list[MessageTrack] = []
        if original is not None:
            tracks += await asyncio.gather(*(self._track(original, group) for group in readers))
        return join_story(
            StoryFacts(
                topic=topic,
                msg_id=msg_id,
                namespace=self._client.config.namespace,
                copies=copies,
                retry_topics={group: [*map(self._bare, names)] for group, names in retry_topics.items()},
                traces=traces,
                tracks=tracks,
                members={group: await self._members(group, gaps) for group in groups},
                gaps=gaps,
                now_ms=self._client.clock.now_ms(),
            )
        )

    async def _traces(self, key: str, trace_topic: str, gaps: list[str]) -> list[FoundTrace]:
        """Return the records of all trace messages with a key."""
        try:
            messages = await self.query_all_messages(trace_topic, key, corrupt_body="raw")
        except TopicNotFoundError:
            gaps.append(
                f"sends and deliveries: there is no trace topic {trace_topic!r} (brokers need "
                "traceTopicEnable=true, clients enable_trace)"
            )
            return []
        except UnsupportedError:
            raise  # a proxy: nothing else can be asked there
        except RocketMQError as error:
            gaps.append(f"sends and deliveries: {error}")
            return []
        found = []
        for message in messages:
            try:
                records = parse_traces(message.body)
            except ProtocolError as error:
                gaps.append(f"the records of trace message {message.msg_id}: {error}")
                continue
            for record in records:
                maker = (
                    record.request_id if isinstance(record, SubBeforeTrace | SubAfterTrace) else record.msg_id
                )
                ip, pid = parse_id_process(maker) or ("", -1)
                found.append(FoundTrace(record=record, addr=message.born_host, ip=ip, pid=pid))
        return found

    async def _readers(self, topic: str, gaps: list[str]) -> list[str]:
        """Return the groups of a topic."""
        try:
            return await self.fetch_topic_groups(topic)
        except RocketMQError as error:
            gaps.append(f"the groups that read the topic: {error}")
            return []

    async def _members(self, group: str, gaps: list[str]) -> Sequence[Connection]:
        try:
            return (await self.fetch_consumer_connection(group)).connection_set
        except RocketMQError as error:
            gaps.append(f"group {group}, its members: {error}")
            return ()

    def _retry_topics(self, topic: str, group: str) -> list[str]:
        """Return the retry topics of a group: of members that pull, and of members that pop."""
        wire_topic, wire_group = self._wire(topic), self._wire(group)
        of_pops = [real_topic(kind, wire_topic, wire_group) for kind in (RETRY_TOPIC, RETRY_TOPIC_V2)]
        return [retry_topic(wire_group), *of_pops]

    async def _copies(self, wire_topic: str, msg_id: str, gaps: list[str]) -> list[MessageExt]:
        """Return the copies of a message in one topic; none if there is no such topic."""
        header = QueryMessageRequestHeader(
            topic=wire_topic, key=msg_id, max_num=64, begin_timestamp=0, end_timestamp=2**63 - 1
        )
        try:
            route = await self._client.name_server.fetch_route(wire_topic)
            found = await self._query_all(route, header, unique=True, corrupt_body="raw")
        except TopicNotFoundError:
            return []
        except RocketMQError as error:
            gaps.append(f"its copies in topic {self._bare(wire_topic)}: {error}")
            return []
        return [message for message in found if message.msg_id == msg_id]


def _keys(record: PubTrace) -> list[str]:
    return (record.keys or "").split()
