"""Offsets: of queues and of consumer groups.

Source of the rules: ConsumerManageProcessor, AdminBrokerProcessor (broker 5.5.0).
"""

from rmqtools.model.codes import BoundaryType, RequestCode, ResponseCode
from rmqtools.model.group import ConsumeStats, OffsetWrapper, ResetOffsetBody, TopicOffset, TopicStatsTable
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.group import GetConsumeStatsRequestHeader
from rmqtools.protocol.headers.offset import (
    GetEarliestMsgStoretimeRequestHeader,
    GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    OffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    ResetOffsetRequestHeader,
    SearchOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rmqtools.protocol.headers.topic import GetTopicStatsInfoRequestHeader
from rmqtools.protocol.wire.body_codec import format_body
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing.fake.server import Peer
from rmqtools.testing.fake.state import Handlers, State, refused, succeeded


class Offsets:
    """Handles requests about offsets of queues and of groups."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.handlers: Handlers = {
            RequestCode.QUERY_CONSUMER_OFFSET: self._query,
            RequestCode.UPDATE_CONSUMER_OFFSET: self._update,
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self._reset,
            RequestCode.GET_MAX_OFFSET: self._max,
            RequestCode.GET_MIN_OFFSET: self._min,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self._search,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self._earliest,
            RequestCode.GET_TOPIC_STATS_INFO: self._topic_stats,
            RequestCode.GET_CONSUME_STATS: self._consume_stats,
        }

    def _query(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(QueryConsumerOffsetRequestHeader, request.ext_fields)
        queue = self._state.log.queue(header.topic, header.queue_id)
        known = self._state.offsets.get((header.consumer_group, header.topic, header.queue_id))
        if known is not None:
            return succeeded(OffsetResponseHeader(offset=known))
        if header.set_zero_if_not_found is False:
            remark = "Not found, do not set to zero, maybe this group boot first"
            return refused(ResponseCode.QUERY_NOT_FOUND, remark)
        if queue.min_offset == 0 and queue.max_offset > 0:
            return succeeded(OffsetResponseHeader(offset=0))
        remark = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
        return refused(ResponseCode.QUERY_NOT_FOUND, remark)

    def _update(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(UpdateConsumerOffsetRequestHeader, request.ext_fields)
        if header.topic not in self._state.topics:
            return refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} not exist!")
        if header.consumer_group not in self._state.groups:
            remark = f"Group {header.consumer_group} not exist!"
            return refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        place = (header.consumer_group, header.topic, header.queue_id)
        if place in self._state.resets:
            return response(ResponseCode.SUCCESS, 0, remark="Offset has been previously reset")
        self._state.offsets[place] = header.commit_offset
        return succeeded()

    def _reset(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        """Move a group's offsets of a topic, or of one queue; the next pull of each queue reports it."""
        header = decode_header(ResetOffsetRequestHeader, request.ext_fields)
        topic = self._state.topics.get(header.topic)
        if topic is None:
            return refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} does not exist")
        if header.group not in self._state.groups:
            remark = f"Group {header.group} does not exist"
            return refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        table = {}
        for queue_id in [header.queue_id] if header.queue_id >= 0 else range(topic.read_queue_nums):
            queue = self._state.log.queue(header.topic, queue_id)
            offset = queue.search(header.timestamp, BoundaryType.LOWER)
            if header.queue_id >= 0 and header.offset not in (None, -1):
                offset = header.offset or 0
                if not queue.min_offset <= offset <= queue.max_offset + 1:
                    span = f"[{queue.min_offset}-{queue.max_offset}]"
                    remark = f"Target offset {offset} not in consume queue range {span}"
                    return refused(ResponseCode.SYSTEM_ERROR, remark)
            table[MessageQueue(header.topic, self._state.name, queue_id)] = offset
        for moved, offset in table.items():
            place = (header.group, moved.topic, moved.queue_id)
            self._state.offsets[place] = self._state.resets[place] = offset
        return succeeded(body=format_body(ResetOffsetBody(offset_table=table)))

    def _max(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(GetMaxOffsetRequestHeader, request.ext_fields)
        queue = self._state.log.queue(header.topic, header.queue_id)
        return succeeded(OffsetResponseHeader(offset=queue.max_offset))

    def _min(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(GetMinOffsetRequestHeader, request.ext_fields)
        queue = self._state.log.queue(header.topic, header.queue_id)
        return succeeded(OffsetResponseHeader(offset=queue.min_offset))

    def _search(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(SearchOffsetRequestHeader, request.ext_fields)
        queue = self._state.log.queue(header.topic, header.queue_id)
        boundary = header.boundary_type or BoundaryType.LOWER
        return succeeded(OffsetResponseHeader(offset=queue.search(header.timestamp, boundary)))

    def _earliest(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(GetEarliestMsgStoretimeRequestHeader, request.ext_fields)
        entries = self._state.log.queue(header.topic, header.queue_id).entries()
        time_ms = entries[0].store_timestamp_ms if entries else -1
        return succeeded(GetEarliestMsgStoretimeResponseHeader(timestamp=time_ms))

    def _topic_stats(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(GetTopicStatsInfoRequestHeader, request.ext_fields)
        topic = self._state.topics.get(header.topic)
        if topic is None:
            return refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist")
        table = {}
        for queue_id in range(max(topic.read_queue_nums, topic.write_queue_nums)):
            queue = self._state.log.queue(header.topic, queue_id)
            entries = queue.entries()
            last_ms = entries[-1].store_timestamp_ms if entries else 0
            table[MessageQueue(header.topic, self._state.name, queue_id)] = TopicOffset(
                min_offset=queue.min_offset, max_offset=queue.max_offset, last_update_timestamp=last_ms
            )
        return succeeded(body=format_body(TopicStatsTable(offset_table=table)))

    def _consume_stats(self, request: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(GetConsumeStatsRequestHeader, request.ext_fields)
        told = {topic for group, topic, _ in self._state.offsets if group == header.consumer_group}
        topics = [header.topic] if header.topic else sorted(told)
        table = {}
        for name in topics:
            topic = self._state.topics.get(name)
            for queue_id in range(0 if topic is None else topic.read_queue_nums):
                queue = self._state.log.queue(name, queue_id)
                consumed = self._state.offsets.get((header.consumer_group, name, queue_id), 0)
                is_stored = queue.min_offset < consumed <= queue.max_offset
                last = queue.at(consumed - 1) if is_stored else None
                table[MessageQueue(name, self._state.name, queue_id)] = OffsetWrapper(
                    broker_offset=queue.max_offset,
                    consumer_offset=consumed,
                    pull_offset=consumed,
                    last_timestamp=0 if last is None else last.store_timestamp_ms,
                )
        return succeeded(body=format_body(ConsumeStats(offset_table=table)))
