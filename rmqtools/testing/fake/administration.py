"""Administrators' requests to a broker: topics, groups, single messages.

Source of the rules: AdminBrokerProcessor, QueryMessageProcessor (broker 5.5.0).
"""

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import KVTable
from rmqtools.model.group_config import SubscriptionGroupConfig, SubscriptionGroupWrapper
from rmqtools.model.message import MessageExt
from rmqtools.model.names import SCHEDULE_TOPIC
from rmqtools.model.route import TopicConfig as TopicSettings
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.group import (
    DeleteSubscriptionGroupRequestHeader,
    GetSubscriptionGroupConfigRequestHeader,
)
from rmqtools.protocol.headers.pull import (
    QueryMessageRequestHeader,
    QueryMessageResponseHeader,
    ViewMessageRequestHeader,
)
from rmqtools.protocol.headers.topic import (
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetBrokerConfigResponseHeader,
    GetTopicConfigRequestHeader,
)
from rmqtools.protocol.wire.bodies import parse_properties_text
from rmqtools.protocol.wire.body_codec import format_body, parse_body
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing.fake.messages import encode_with_body
from rmqtools.testing.fake.server import Peer
from rmqtools.testing.fake.state import DELAY_SECONDS, Handlers, State, refused, succeeded
from rmqtools.testing.fake.topics import TopicConfig

_MOST_BY_KEY = 64  # maxMsgsNumBatch
_MOST_BY_UNIQUE_KEY = 32  # defaultQueryMaxNum


class Administration:
    """Creates and deletes topics and groups."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.handlers: Handlers = {
            RequestCode.UPDATE_AND_CREATE_TOPIC: self._create_topic,
            RequestCode.DELETE_TOPIC_IN_BROKER: self._delete_topic,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self._create_group,
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: self._get_group,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self._delete_group,
            RequestCode.VIEW_MESSAGE_BY_ID: self._view,
            RequestCode.GET_BROKER_RUNTIME_INFO: self._runtime_info,
            RequestCode.GET_BROKER_CONFIG: self._get_config,
            RequestCode.UPDATE_BROKER_CONFIG: self._update_config,
            RequestCode.GET_TOPIC_CONFIG: self._get_topic,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self._list_groups,
            RequestCode.QUERY_MESSAGE: self._query_messages,
        }

        self._config = {
            "brokerName": state.name,
            "brokerClusterName": state.cluster,
            "fileReservedTime": "72",
            "brokerPermission": "6",
            "useServerSideResetOffset": "true",
            "messageDelayLevel": " ".join(f"{seconds}s" for seconds in DELAY_SECONDS),
            "storeType": "default",
            "enableBuildConsumeQueueConcurrently": "false",
        }

    def _create_topic(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(CreateTopicRequestHeader, request.ext_fields)
        config = TopicConfig(
            header.read_queue_nums,
            header.write_queue_nums,
            header.perm,
            header.topic_sys_flag or 0,
            header.order,
            _changed(self._state.topics.get(header.topic), header.attributes or ""),
        )
        self._state.topics.put(header.topic, config)
        return succeeded()

    def _delete_topic(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        topic = decode_header(DeleteTopicRequestHeader, request.ext_fields).topic
        self._state.topics.delete(topic)
        self._state.log.delete(topic)
        for place in [place for place in self._state.offsets if place[1] == topic]:
            del self._state.offsets[place]
        return succeeded()

    def _create_group(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        config = parse_body(SubscriptionGroupConfig, request.body)
        self._state.groups[config.group_name] = config
        return succeeded()

    def _get_group(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        name = decode_header(GetSubscriptionGroupConfigRequestHeader, request.ext_fields).group
        return succeeded(body=format_body(self._state.group(name)))

    def _delete_group(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(DeleteSubscriptionGroupRequestHeader, request.ext_fields)
        self._state.groups.pop(header.group_name, None)
        if header.clean_offset:
            for place in [place for place in self._state.offsets if place[0] == header.group_name]:
                del self._state.offsets[place]
        return succeeded()

    def _view(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        offset = decode_header(ViewMessageRequestHeader, request.ext_fields).offset
        message = self._state.log.look_up(offset)
        if message is None:
            return refused(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}")
        return succeeded(body=encode_with_body(message))

    def _runtime_info(self, _request: RemotingCommand, _: Peer) -> RemotingCommand:
        table = {
            "brokerVersionDesc": "fake",
            "brokerActive": str(not self._state.is_slave).lower(),  # whether it delivers delayed messages
            "putTps": "0.0 0.0 0.0",
            "bootTimestamp": str(self._state.boot_timestamp_ms),
            "runtime": _runtime_text(self._state.timers.now_ms() - self._state.boot_timestamp_ms),
        }
        for level in range(1, len(DELAY_SECONDS) + 1):
            stored = self._state.log.queue(SCHEDULE_TOPIC, level - 1).max_offset
            waiting = self._state.delayed[level]
            table[f"scheduleMessageOffset_{level}"] = f"{stored - waiting},{stored}"
        return succeeded(body=format_body(KVTable(table=table)))

    def _get_config(self, _request: RemotingCommand, _: Peer) -> RemotingCommand:
        text = "".join(f"{name}={value}\n" for name, value in self._config.items())
        return succeeded(GetBrokerConfigResponseHeader(version="{}"), body=text.encode())

    def _update_config(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        changed = parse_properties_text(request.body)
        self._config |= changed
        if "brokerPermission" in changed:  # the broker registers all its topics anew
            self._state.topics.permission = int(changed["brokerPermission"])
            self._state.topics.is_wiped = False
        return succeeded()

    def _get_topic(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        name = decode_header(GetTopicConfigRequestHeader, request.ext_fields).topic
        topic = self._state.topics.get(name)
        if topic is None:
            return refused(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {name}")
        config = TopicSettings(
            topic_name=name,
            read_queue_nums=topic.read_queue_nums,
            write_queue_nums=topic.write_queue_nums,
            perm=topic.perm,
            topic_sys_flag=topic.topic_sys_flag,
            order=topic.order,
            attributes=topic.attributes,
        )
        return succeeded(body=format_body(config))

    def _list_groups(self, _request: RemotingCommand, _: Peer) -> RemotingCommand:
        return succeeded(
            body=format_body(SubscriptionGroupWrapper(subscription_group_table=self._state.groups))
        )

    def _query_messages(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(QueryMessageRequestHeader, request.ext_fields)
        found = [
            message
            for message in self._state.log.find(header.topic, header.key)
            if header.begin_timestamp <= _index_time(message) <= header.end_timestamp
        ]
        if not found:
            remark = "can not find message, maybe time range not correct"
            return refused(ResponseCode.QUERY_NOT_FOUND, remark)
        is_unique = (request.ext_fields or {}).get("_UNIQUE_KEY_QUERY") == "true"
        most = _MOST_BY_UNIQUE_KEY if is_unique else min(header.max_num, _MOST_BY_KEY)
        found.sort(key=lambda message: message.commit_log_offset)
        answer = QueryMessageResponseHeader(index_last_update_timestamp=0, index_last_update_phyoffset=0)
        return succeeded(answer, body=b"".join(map(encode_with_body, found[-most:])))


def _index_time(message: MessageExt) -> int:
    """Return the time of a message's index entry: whole seconds (IndexFile of the broker)."""
    return message.store_timestamp_ms // 1000 * 1000


def _changed(topic: TopicConfig | None, text: str) -> dict[str, str]:
    """Return a topic's attributes after a change: ``+name=value,-name`` (AttributeParser of the broker)."""
    attributes = dict(topic.attributes) if topic is not None else {}
    for part in filter(None, text.split(",")):
        name, _, value = part[1:].partition("=")
        if part.startswith("+"):
            attributes[name] = value
        else:
            attributes.pop(name, None)
    return attributes


def _runtime_text(milliseconds: int) -> str:
    """Return the time since a broker's start as it writes it."""
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"
