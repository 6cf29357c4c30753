"""Copies of a message outside its topic: it is delayed, waits for a group's retry, or is a dead letter.

    waits for its time      SCHEDULE_TOPIC_XXXX (levels) or rmq_sys_wheel_timer; REAL_TOPIC is the target
    failed, to be retried   the same, with REAL_TOPIC %RETRY%group; then there (popped: %RETRY%group_topic)
    failed too often        %DLQ%group

A copy has the unique key and the keys of its message, and brokers index it by them.
Source of the rule: ScheduleMessageService, TimerMessageStore, consumerSendMsgBack of
AbstractSendMessageProcessor (broker 5.5.0).
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from rmqtools import Admin, MessageExt, MessageQueue
from rmqtools.cli.connection import broker_clock
from rmqtools.cli.moments import duration_seconds
from rmqtools.cli.printing import time_text
from rmqtools.errors import RocketMQError, TopicNotFoundError
from rmqtools.model.message_const import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TIMER_OUT_MS,
)
from rmqtools.model.names import DELAY_TOPICS, dlq_topic, pop_retry_topic, retry_topic, without_this_namespace
from rmqtools.model.queue import queue_name


class CopyState(StrEnum):
    """Reasons of a message's copy outside its topic."""

    DELAYED = "DELAYED"
    WAITS_FOR_RETRY = "WAITS_FOR_RETRY"
    RETRY_NOT_CONSUMED = "RETRY_NOT_CONSUMED"
    DEAD_LETTER = "DEAD_LETTER"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCopy:
    """A copy of a message; ``until_ms``: when it goes on, None if nobody knows or it waits for a member."""

    state: CopyState
    consumer_group: str | None
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    retries: int
    stored_ms: int
    until_ms: int | None = None

    @property
    def text(self) -> str:
        """The state in words."""
        place = f"{self.topic} {queue_name(self)} offset {self.queue_offset}"
        until = time_text(self.until_ms) or "a time that is not known"
        return {
            CopyState.DELAYED: f"delayed until {until}",
            CopyState.WAITS_FOR_RETRY: f"waits for retry {self.retries} until {until}",
            CopyState.RETRY_NOT_CONSUMED: f"retry {self.retries} is not consumed yet: {place}",
            CopyState.DEAD_LETTER: f"dead letter since {time_text(self.stored_ms)}: {place}",
        }[self.state]


class MessageCopies:
    """Finds copies of messages.

    Args:
        admin: the cluster.
        namespace: that of its settings: brokers name topics with it in properties.
    """

    def __init__(self, admin: Admin, namespace: str | None) -> None:
        self._admin = admin
        self._namespace = namespace

    def delayed(self, topic: str, key: str, *, unique: bool) -> list[tuple[MessageExt, MessageCopy]]:
        """Return the messages of a topic with a key that wait for their time of delivery."""
        waiting = self._waiting(key, unique=unique)
        return [(message, copy) for message, copy in waiting if self.goes_to(message) == topic]

    def goes_to(self, message: MessageExt) -> str | None:
        """Return the topic that a delayed message goes to, or went to; None: it is no delayed one."""
        if message.topic not in DELAY_TOPICS:
            return None
        topic = message.properties.get(PROPERTY_REAL_TOPIC, "")
        return without_this_namespace(topic, self._namespace) or None

    def failed(self, message: MessageExt, groups: Iterable[str]) -> dict[str, MessageCopy]:
        """Return, for each group in which a message failed and is not done, where it is now."""
        waiting = self._waiting(message.msg_id, unique=True)
        found: dict[str, MessageCopy] = {}
        for group in groups:
            topics = (retry_topic(group), pop_retry_topic(message.topic, group))
            copy = self._dead_letter(message, group) or self._scheduled(waiting, group, topics)
            copy = copy or self._retried(message, group, topics)
            if copy is not None:
                found[group] = copy
        return found

    def _dead_letter(self, message: MessageExt, group: str) -> MessageCopy | None:
        stored = self._stored(dlq_topic(group), message.msg_id, unique=True)
        return _copy(CopyState.DEAD_LETTER, stored[-1], group) if stored else None

    def _scheduled(
        self, waiting: Sequence[tuple[MessageExt, MessageCopy]], group: str, topics: Sequence[str]
    ) -> MessageCopy | None:
        for message, copy in reversed(waiting):
            if self.goes_to(message) in topics:
                return replace(copy, state=CopyState.WAITS_FOR_RETRY, consumer_group=group)
        return None

    def _retried(self, message: MessageExt, group: str, topics: Sequence[str]) -> MessageCopy | None:
        """Return the latest copy in the group's retry topic, unless the group has consumed it."""
        for topic in topics:
            for stored in self._stored(topic, message.msg_id, unique=True)[-1:]:
                offsets = self._admin.fetch_consumer_offsets(group, topic)
                at = offsets.get(MessageQueue(topic, stored.broker_name, stored.queue_id))
                if stored.queue_offset >= (at or 0):
                    return _copy(CopyState.RETRY_NOT_CONSUMED, stored, group)
        return None

    def _waiting(self, key: str, *, unique: bool) -> list[tuple[MessageExt, MessageCopy]]:
        """Return the messages with a key whose time has not come, oldest first by topic of waiting."""
        found, now_ms = [], broker_clock(self._admin)
        for topic in DELAY_TOPICS:
            for message in self._stored(topic, key, unique=unique):
                due_ms = self._due_ms(message)
                if due_ms is None or due_ms > now_ms():
                    found.append((message, _copy(CopyState.DELAYED, message, None, due_ms)))
        return found

    def _due_ms(self, message: MessageExt) -> int | None:
        """Return when a waiting message goes on; None: its broker does not tell its delay levels."""
        try:
            if out := message.properties.get(PROPERTY_TIMER_OUT_MS):
                return int(out)
            brokers = self._admin.fetch_cluster_info().broker_addr_table
            settings = self._admin.fetch_broker_config(brokers[message.broker_name].broker_addrs[0])
            levels = settings["messageDelayLevel"].split()
            level = levels[min(int(message.properties[PROPERTY_DELAY_TIME_LEVEL]), len(levels)) - 1]
            return message.store_timestamp_ms + int(duration_seconds(level) * 1000)
        except (RocketMQError, LookupError, ValueError):
            return None

    def _stored(self, topic: str, key: str, *, unique: bool) -> list[MessageExt]:
        """Return the messages of a topic with a key, oldest first; none if there is no such topic."""
        with suppress(TopicNotFoundError):
            return self._admin.query_messages(topic, key, unique=unique)
        return []


def _copy(
    state: CopyState, message: MessageExt, group: str | None, until_ms: int | None = None
) -> MessageCopy:
    return MessageCopy(
        state=state,
        consumer_group=group,
        topic=message.topic,
        broker_name=message.broker_name,
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        retries=message.reconsume_times,
        stored_ms=message.store_timestamp_ms,
        until_ms=until_ms,
    )
