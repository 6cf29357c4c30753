"""Telling brokers what became of popped messages (5.x): consumed, or to come again later.

Source of the rules: DefaultMQPushConsumerImpl.ackAsync, changePopInvisibleTimeAsync (Java client).
"""

from rmqtools.engine.client import ClientCore
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_POP_CK
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.command import RemotingCommand, request
from rmqtools.protocol.headers import AckMessageRequestHeader, ChangeInvisibleTimeRequestHeader
from rmqtools.protocol.pop_extra_info import PopExtraInfo, parse_extra_info

log = get_logger(__name__)


class Acknowledger:
    """The way back for the popped messages of one group; they have the topic their user knows."""

    def __init__(self, client: ClientCore, group: str) -> None:
        self._client = client
        self._group = group

    async def acknowledge(self, message: MessageExt) -> bool:
        """The message is consumed; whether the broker knows. Else it comes again."""
        info = parse_extra_info(message.properties[PROPERTY_POP_CK])
        header = AckMessageRequestHeader(
            consumer_group=self._group,
            topic=self._stored_topic(message, info),
            queue_id=info.queue_id,
            extra_info=message.properties[PROPERTY_POP_CK],
            offset=_offset(message, info),
            bname=info.broker_name,
        )
        return await self._tell(info, request(header), message)

    async def hide(self, message: MessageExt, seconds: float) -> bool:
        """The message is to come again in so many seconds; whether the broker knows.

        Else it comes when the time is over for which it was hidden at first.
        """
        info = parse_extra_info(message.properties[PROPERTY_POP_CK])
        header = ChangeInvisibleTimeRequestHeader(
            consumer_group=self._group,
            topic=self._stored_topic(message, info),
            queue_id=info.queue_id,
            extra_info=message.properties[PROPERTY_POP_CK],
            offset=_offset(message, info),
            invisible_time=round(seconds * 1000),
            bname=info.broker_name,
        )
        return await self._tell(info, request(header), message)

    async def _tell(self, info: PopExtraInfo, command: RemotingCommand, message: MessageExt) -> bool:
        routes, topic = self._client.routes, self._client.wire_topic(message.topic)
        queue = MessageQueue(topic, info.broker_name, info.queue_id)
        try:
            addr = routes.master_addr(routes.broker_name(queue))
            await self._client.remoting.invoke_ok(addr, command)
        except RocketMQError as error:
            log.warning("popped_message_not_settled", msg_id=message.msg_id, reason=str(error))
            return False
        return True

    def _stored_topic(self, message: MessageExt, info: PopExtraInfo) -> str:
        return info.real_topic(self._client.wire_topic(message.topic), self._group)


def _offset(message: MessageExt, info: PopExtraInfo) -> int:
    return message.queue_offset if info.queue_offset is None else info.queue_offset
