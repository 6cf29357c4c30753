"""Answers the requests that brokers send to a consumer on behalf of an administrator.

They ask for its state (GET_CONSUMER_RUNNING_INFO) or offsets (GET_CONSUMER_STATUS_FROM_CLIENT), to consume
one message (CONSUME_MESSAGE_DIRECTLY), or to move to other offsets (RESET_CONSUMER_CLIENT_OFFSET; brokers 5.x
reset offsets themselves and report it in their answer to the next pull).
Source of the rules: ClientRemotingProcessor, MQClientInstance.resetOffset, getConsumerStatus,
consumeMessageDirectly, also of ConsumeMessageConcurrentlyService and ConsumeMessageOrderlyService (Java
client). Ours: a queue continues at its new offset at once, where Java waits 10 s and rebalances; a request
for the running info of another group is refused, naming both groups; of a message consumed directly, a
listener that returns None has succeeded, and a dead letter goes to the listener of the topic it was sent to.
"""

from collections.abc import Awaitable, Callable, Mapping

from rmqtools.clock import Clock
from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.engine.consumer.listeners import ConsumeStatus, Listeners
from rmqtools.engine.consumer.running_info import running_info
from rmqtools.engine.group.member import Member
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import CMResult, ConsumeMessageDirectlyResult, GetConsumerStatusBody
from rmqtools.policy.start_offset import known_offset
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.group import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
)
from rmqtools.protocol.headers.offset import ResetOffsetRequestHeader
from rmqtools.protocol.messages.found import decode_single
from rmqtools.protocol.wire.bodies import format_body, parse_reset_offset
from rmqtools.protocol.wire.command import RemotingCommand, response

log = get_logger(__name__)

_RESULTS: Mapping[ConsumeStatus, CMResult] = {
    ConsumeConcurrentlyStatus.CONSUME_SUCCESS: CMResult.CR_SUCCESS,
    ConsumeConcurrentlyStatus.RECONSUME_LATER: CMResult.CR_LATER,
    ConsumeOrderlyStatus.SUCCESS: CMResult.CR_SUCCESS,
    ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT: CMResult.CR_LATER,
    ConsumeOrderlyStatus.COMMIT: CMResult.CR_COMMIT,
    ConsumeOrderlyStatus.ROLLBACK: CMResult.CR_ROLLBACK,
}


ConsumeDirectly = Callable[[MessageExt], Awaitable[ConsumeMessageDirectlyResult | None]]


class OperatorRequests:
    """Answers for one consumer."""

    def __init__(self, member: Member, consume_directly: ConsumeDirectly | None = None) -> None:
        """``consume_directly``: gives a message to its listener, None if it has none; None: not supported."""
        self._member = member
        self._ask_listener = consume_directly

    def listen(self) -> None:
        """Register the request handlers."""
        on_request = self._member.client.remoting.on_request
        on_request(RequestCode.GET_CONSUMER_RUNNING_INFO, self._answer_running_info)
        on_request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, self._answer_offsets)
        on_request(RequestCode.CONSUME_MESSAGE_DIRECTLY, self._consume_directly)
        on_request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, self._reset_offsets)

    async def _answer_running_info(self, command: RemotingCommand, _: str) -> RemotingCommand:
        header = decode_header(GetConsumerRunningInfoRequestHeader, command.ext_fields)
        if header.consumer_group != self._member.group:
            return self._no_such_group(command, header.consumer_group)
        info = running_info(self._member, with_jstack=header.jstack_enable)
        return response(ResponseCode.SUCCESS, command.opaque, body=format_body(info))

    async def _answer_offsets(self, command: RemotingCommand, _: str) -> RemotingCommand:
        header = decode_header(GetConsumerStatusRequestHeader, command.ext_fields)
        noted = self._member.offsets.noted() if header.group == self._member.group else {}
        table = {queue: offset for queue, offset in noted.items() if queue.topic == header.topic}
        body = format_body(GetConsumerStatusBody(message_queue_table=table))
        return response(ResponseCode.SUCCESS, command.opaque, body=body)

    async def _consume_directly(self, command: RemotingCommand, _: str) -> RemotingCommand:
        header = decode_header(ConsumeMessageDirectlyResultRequestHeader, command.ext_fields)
        if header.consumer_group != self._member.group:
            return self._no_such_group(command, header.consumer_group)
        message = decode_single(
            command.body,
            max_body_bytes=self._member.config.max_decompressed_bytes,
            broker_name=header.broker_name or "",
        )
        result = await self._ask_listener(message) if self._ask_listener else None
        if result is None:
            remark = f"group {self._member.group} has no listener for topic {message.topic} at this member"
            return response(ResponseCode.SYSTEM_ERROR, command.opaque, remark=remark)
        log.info("consumed_directly", group=self._member.group, msg_id=message.msg_id, result=str(result))
        return response(ResponseCode.SUCCESS, command.opaque, body=format_body(result))

    async def _reset_offsets(self, command: RemotingCommand, addr: str) -> RemotingCommand:
        header = decode_header(ResetOffsetRequestHeader, command.ext_fields)
        body = await parse_aside(parse_reset_offset, command.body) if command.body else None
        offsets = {} if body is None else body.offset_table
        if header.group == self._member.group:
            log.info("offset_reset_asked", group=header.group, topic=header.topic, broker=addr)
            self._reset(header.topic, offsets)
        return response(ResponseCode.SUCCESS, command.opaque)

    def _reset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        for queue, offset in offsets.items():
            held = self._member.held.pulled.get(queue)
            if queue.topic != topic or held is None or held.is_dropped:
                continue
            if known_offset(offset) is None:
                log.warning("offset_reset_ignored", queue=str(queue), offset=offset)
            else:
                self._member.held.move(held, offset, note=True)

    def _no_such_group(self, command: RemotingCommand, group: str) -> RemotingCommand:
        remark = f"this client is a member of group {self._member.group}, not of {group}"
        return response(ResponseCode.SYSTEM_ERROR, command.opaque, remark=remark)


async def consume_directly(
    listeners: Listeners, message: MessageExt, context: ConsumeContext, *, orderly: bool, clock: Clock
) -> ConsumeMessageDirectlyResult:
    """Call the listener of the message's topic, which must exist, and describe the outcome."""
    began, remark = clock.monotonic(), None
    try:
        result = _RESULTS[await listeners.ask([message], context)]
    except Exception as error:  # a user's callback: the requester gets the error
        log.warning("listener_failed", topic=message.topic, reason=repr(error), exc_info=error)
        result, remark = CMResult.CR_THROW_EXCEPTION, f"{type(error).__name__}: {error}"
    return ConsumeMessageDirectlyResult(
        order=orderly,
        auto_commit=context.auto_commit,
        consume_result=result,
        remark=remark,
        spent_time_mills=round((clock.monotonic() - began) * 1000),
    )
