"""What brokers ask of a consumer on behalf of an administrator.

Its state (GET_CONSUMER_RUNNING_INFO), its offsets (GET_CONSUMER_STATUS_FROM_CLIENT), to consume one message
(CONSUME_MESSAGE_DIRECTLY), to go to other offsets (RESET_CONSUMER_CLIENT_OFFSET; brokers 5.x do that
themselves and tell in their answer to the next pull).
Source of the rules: ClientRemotingProcessor, MQClientInstance.resetOffset, getConsumerStatus,
consumeMessageDirectly (Java client). Ours: a queue goes on at its new offset at once, where Java waits for
10 s and rebalances; a broker that asks for the running info of a group of another name is told both names.
"""

from collections.abc import Mapping
from typing import Protocol

from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.engine.running_info import ToldConsumer, running_info
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import ConsumeMessageDirectlyResult, GetConsumerStatusBody
from rmqtools.protocol.bodies import format_body, parse_reset_offset
from rmqtools.protocol.command import RemotingCommand, response
from rmqtools.protocol.headers import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
    ResetOffsetRequestHeader,
    decode_header,
)
from rmqtools.protocol.messages import decode_message

log = get_logger(__name__)


class OperatedConsumer(ToldConsumer, Protocol):
    """The consumer that is asked. ``group`` is the wire name."""

    group: str

    def restart(self, held: ProcessQueue, offset: int) -> None:
        """Give up what is held of a queue and go on at another offset."""

    async def consume_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult | None:
        """Give a message to its listener; None: this kind of consumer has none."""


class OperatorRequests:
    """Answers for one consumer."""

    def __init__(self, consumer: OperatedConsumer) -> None:
        self._consumer = consumer

    def listen(self) -> None:
        """Answer from now on."""
        on_request = self._consumer.client.remoting.on_request
        on_request(RequestCode.GET_CONSUMER_RUNNING_INFO, self._tell_running_info)
        on_request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, self._tell_offsets)
        on_request(RequestCode.CONSUME_MESSAGE_DIRECTLY, self._consume_directly)
        on_request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, self._reset_offsets)

    async def _tell_running_info(self, command: RemotingCommand, _: str) -> RemotingCommand:
        header = decode_header(GetConsumerRunningInfoRequestHeader, command.ext_fields)
        if header.consumer_group != self._consumer.group:
            return self._no_such_group(command, header.consumer_group)
        info = running_info(self._consumer, with_jstack=header.jstack_enable)
        return response(ResponseCode.SUCCESS, command.opaque, body=format_body(info))

    async def _tell_offsets(self, command: RemotingCommand, _: str) -> RemotingCommand:
        header = decode_header(GetConsumerStatusRequestHeader, command.ext_fields)
        noted = self._consumer.offsets.noted() if header.group == self._consumer.group else {}
        table = {queue: offset for queue, offset in noted.items() if queue.topic == header.topic}
        body = format_body(GetConsumerStatusBody(message_queue_table=table))
        return response(ResponseCode.SUCCESS, command.opaque, body=body)

    async def _consume_directly(self, command: RemotingCommand, _: str) -> RemotingCommand:
        header = decode_header(ConsumeMessageDirectlyResultRequestHeader, command.ext_fields)
        if header.consumer_group != self._consumer.group:
            return self._no_such_group(command, header.consumer_group)
        message = decode_message(command.body, broker_name=header.broker_name or "")
        result = await self._consumer.consume_directly(message)
        if result is None:
            remark = f"group {self._consumer.group} has no listener for topic {message.topic} at this member"
            return response(ResponseCode.SYSTEM_ERROR, command.opaque, remark=remark)
        log.info("consumed_directly", group=self._consumer.group, msg_id=message.msg_id, result=str(result))
        return response(ResponseCode.SUCCESS, command.opaque, body=format_body(result))

    async def _reset_offsets(self, command: RemotingCommand, addr: str) -> RemotingCommand:
        header = decode_header(ResetOffsetRequestHeader, command.ext_fields)
        offsets = parse_reset_offset(command.body).offset_table if command.body else {}
        if header.group == self._consumer.group:
            log.info("offset_reset_asked", group=header.group, topic=header.topic, broker=addr)
            self._reset(header.topic, offsets)
        return response(ResponseCode.SUCCESS, command.opaque)

    def _reset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        for queue, offset in offsets.items():
            held = self._consumer.table.get(queue)
            if queue.topic == topic and held is not None and not held.is_dropped:
                self._consumer.restart(held, offset)

    def _no_such_group(self, command: RemotingCommand, group: str) -> RemotingCommand:
        remark = f"this client is a member of group {self._consumer.group}, not of {group}"
        return response(ResponseCode.SYSTEM_ERROR, command.opaque, remark=remark)
