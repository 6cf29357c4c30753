"""Handles messages that are sent, or sent back, to a broker.

Source of the rules: SendMessageProcessor, AbstractSendMessageProcessor (broker 5.5.0).
"""

import random
from dataclasses import replace

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import (
    PROPERTY_CLUSTER,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_MSG_REGION,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_TRACE_SWITCH,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
)
from rmqtools.model.names import FORBIDDEN_SEND_TOPICS, HALF_TOPIC, RETRY_GROUP_TOPIC_PREFIX, SCHEDULE_TOPIC
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.send import (
    ConsumerSendMsgBackRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)
from rmqtools.protocol.messages.batch import decode_batch
from rmqtools.protocol.messages.message_id import UniqueIdGenerator, format_offset_msg_id
from rmqtools.protocol.messages.properties import parse_properties
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing.fake.commit_log import Entry
from rmqtools.testing.fake.server import Peer
from rmqtools.testing.fake.state import DELAY_SECONDS, Handlers, State, refused, succeeded
from rmqtools.testing.fake.topics import TopicConfig

_MAX_BODY_BYTES = 4 * 1024 * 1024
_FIRST_RETRY_LEVEL = 3
_REGION = {PROPERTY_MSG_REGION: "DefaultRegion", PROPERTY_TRACE_SWITCH: "true"}
_UNIQUE = PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
_SendHeader = SendMessageRequestHeader | SendMessageRequestHeaderV2
_choose_queue = random.Random(0).randrange


class Sends:
    """Stores messages, at once or after their delay."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._ids = UniqueIdGenerator("127.0.0.1", 0, id(self))
        self._own = _REGION | {PROPERTY_CLUSTER: state.cluster}
        self.handlers: Handlers = {
            RequestCode.SEND_MESSAGE: self.send,
            RequestCode.SEND_MESSAGE_V2: self.send,
            RequestCode.SEND_BATCH_MESSAGE: self.send,
            RequestCode.CONSUMER_SEND_MSG_BACK: self._send_back,
        }

    def store(self, message: MessageExt) -> Entry:
        """Store a message; a message with a delay level goes to the schedule topic first."""
        level = int(message.properties.get(PROPERTY_DELAY_TIME_LEVEL, "0"))
        if level <= 0 or message.topic == HALF_TOPIC:
            return self._state.log.append(message)
        level = min(level, len(DELAY_SECONDS))
        home = {PROPERTY_REAL_TOPIC: message.topic, PROPERTY_REAL_QUEUE_ID: str(message.queue_id)}
        waiting = replace(
            message, topic=SCHEDULE_TOPIC, queue_id=level - 1, properties={**message.properties, **home}
        )
        seconds = DELAY_SECONDS[level - 1] * self._state.settings.delay_scale
        self._state.delayed[level] += 1
        self._state.timers.after(seconds, lambda: self._deliver(waiting, level))
        return self._state.log.append(waiting)

    def _deliver(self, message: MessageExt, level: int) -> None:
        self._state.delayed[level] -= 1
        self._state.log.append(
            replace(
                message,
                topic=message.properties[PROPERTY_REAL_TOPIC],
                queue_id=int(message.properties[PROPERTY_REAL_QUEUE_ID]),
                store_timestamp_ms=self._state.timers.now_ms(),
            )
        )

    def send(self, request: RemotingCommand, peer: Peer) -> RemotingCommand:
        """Store the messages of a request."""
        header: _SendHeader
        if request.code == RequestCode.SEND_MESSAGE:
            header = decode_header(SendMessageRequestHeader, request.ext_fields)
        else:
            header = decode_header(SendMessageRequestHeaderV2, request.ext_fields)
        topic = self._state.topics.for_send(
            header.topic, header.default_topic, header.default_topic_queue_nums
        )
        if refusal := self._refusal(header, request, topic):
            refusal.ext_fields = _REGION
            return refusal
        assert topic is not None
        queue_id = header.queue_id if header.queue_id >= 0 else _choose_queue(topic.write_queue_nums)
        messages = self._messages(header, request, peer, queue_id)
        entries = [self.store(self._rerouted(message, header)) for message in messages]
        ids = [format_offset_msg_id(self._state.addr, entry.commit_log_offset) for entry in entries]
        fields = SendMessageResponseHeader(
            msg_id=",".join(ids),
            queue_id=queue_id,
            queue_offset=entries[0].queue_offset,
            transaction_id=messages[0].properties.get(_UNIQUE) if len(messages) == 1 else None,
        )
        answer = succeeded(fields)
        answer.ext_fields = {**answer.ext_fields, **_REGION}
        return answer

    def _refusal(
        self, header: _SendHeader, request: RemotingCommand, topic: TopicConfig | None
    ) -> RemotingCommand | None:
        if header.topic in FORBIDDEN_SEND_TOPICS:
            remark = f"Sending message to topic[{header.topic}] is forbidden."
            return refused(ResponseCode.NO_PERMISSION, remark)
        if topic is None:
            remark = f"topic[{header.topic}] not exist, apply first please!"
            return refused(ResponseCode.TOPIC_NOT_EXIST, remark)
        if header.queue_id >= max(topic.read_queue_nums, topic.write_queue_nums):
            remark = f"request queueId[{header.queue_id}] is illegal, {topic}"
            return refused(ResponseCode.INVALID_PARAMETER, remark)
        if len(request.body) > _MAX_BODY_BYTES and header.batch:
            return refused(
                ResponseCode.SYSTEM_ERROR, "java.lang.RuntimeException: message body size exceeded"
            )
        if len(request.body) > _MAX_BODY_BYTES:
            return refused(ResponseCode.MESSAGE_ILLEGAL, "the message is illegal, maybe it is too long")
        if self._state.log.is_full:
            return refused(ResponseCode.SERVICE_NOT_AVAILABLE, "the fake broker's store is full (max_bytes)")
        return None

    def _messages(
        self, header: _SendHeader, request: RemotingCommand, peer: Peer, queue_id: int
    ) -> list[MessageExt]:
        properties = parse_properties(header.properties)
        now_ms = self._state.timers.now_ms()
        message = MessageExt(
            topic=header.topic,
            queue_id=queue_id,
            queue_offset=0,
            commit_log_offset=0,
            body=request.body,
            properties={_UNIQUE: self._ids.next(now_ms)} | properties | self._own,
            flag=header.flag,
            sys_flag=header.sys_flag,
            born_timestamp_ms=header.born_timestamp,
            born_host=peer.addr,
            store_timestamp_ms=now_ms,
            store_host=self._state.addr,
            reconsume_times=header.reconsume_times or 0,
        )
        if request.code != RequestCode.SEND_BATCH_MESSAGE:
            return [_prepared(message)]
        return [
            replace(message, flag=one.flag, body=one.body, properties=one.properties)
            for one in decode_batch(request.body)
        ]

    def _rerouted(self, message: MessageExt, header: _SendHeader) -> MessageExt:
        """Return the message, for the dead-letter topic if it was sent to a retry topic too often."""
        if not message.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return message
        group = message.topic.removeprefix(RETRY_GROUP_TOPIC_PREFIX)
        limit = header.max_reconsume_times
        limit = self._state.group(group).retry_max_times if limit is None else limit
        if message.reconsume_times <= limit:
            return message
        return self._dead(message, group)

    def _send_back(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(ConsumerSendMsgBackRequestHeader, request.ext_fields)
        group = self._state.group(header.group)
        if group.retry_queue_nums <= 0:
            return succeeded()
        message = self._state.log.look_up(header.offset)
        if message is None:
            return refused(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {header.offset}")
        limit = group.retry_max_times if header.max_reconsume_times is None else header.max_reconsume_times
        retry = self._state.topics.retry(header.group, group.retry_queue_nums)
        again = self._again(message, self._origin(message))
        if message.reconsume_times >= limit or header.delay_level < 0:
            self.store(self._dead(again, header.group))
        else:
            level = header.delay_level or _FIRST_RETRY_LEVEL + message.reconsume_times
            properties = {**again.properties, PROPERTY_DELAY_TIME_LEVEL: str(level)}
            queue_id = _choose_queue(group.retry_queue_nums)
            self.store(replace(again, topic=retry, queue_id=queue_id, properties=properties))
        return succeeded()

    def _origin(self, message: MessageExt) -> dict[str, str]:
        known = message.properties
        return {
            PROPERTY_RETRY_TOPIC: known.get(PROPERTY_RETRY_TOPIC, message.topic),
            PROPERTY_ORIGIN_MESSAGE_ID: known.get(PROPERTY_ORIGIN_MESSAGE_ID, message.offset_msg_id),
            PROPERTY_WAIT_STORE_MSG_OK: "false",
        }

    def _again(self, message: MessageExt, origin: dict[str, str]) -> MessageExt:
        return replace(
            message,
            properties={**message.properties, **origin},
            reconsume_times=message.reconsume_times + 1,
            store_timestamp_ms=self._state.timers.now_ms(),
            store_host=self._state.addr,
        )

    def _dead(self, message: MessageExt, group: str) -> MessageExt:
        properties = {**message.properties, PROPERTY_DELAY_TIME_LEVEL: "0"}
        return replace(message, topic=self._state.topics.dlq(group), queue_id=0, properties=properties)


def _prepared(message: MessageExt) -> MessageExt:
    """Prepare a half message for waiting; return other messages unchanged."""
    if message.properties.get(PROPERTY_TRANSACTION_PREPARED) != "true":
        return message
    home = {PROPERTY_REAL_TOPIC: message.topic, PROPERTY_REAL_QUEUE_ID: str(message.queue_id)}
    return replace(
        message,
        topic=HALF_TOPIC,
        queue_id=0,
        sys_flag=message.sys_flag & ~MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
        properties={**message.properties, **home},
    )
