"""Sending a failed message back to its broker, which gives it to the group again, or makes it a dead letter.

Source of the rule: DefaultMQPushConsumerImpl.sendMessageBack (Java client).
"""

from rmqtools.engine.client import ClientCore
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.message import MessageExt
from rmqtools.protocol.command import request
from rmqtools.protocol.headers import ConsumerSendMsgBackRequestHeader

log = get_logger(__name__)


class SendBack:
    """The way back for the messages of one group."""

    def __init__(self, client: ClientCore, group: str, *, max_reconsume_times: int) -> None:
        self._client = client
        self._group = group
        self._max_reconsume_times = max_reconsume_times

    async def send(self, message: MessageExt, delay_level: int) -> bool:
        """Whether the broker has taken it; ``message`` has the topic its user knows."""
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.commit_log_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.msg_id,
            origin_topic=self._client.wire_topic(message.topic),
            max_reconsume_times=self._max_reconsume_times,
            bname=message.broker_name,
        )
        try:
            addr = self._client.routes.master_addr(message.broker_name)
            await self._client.remoting.invoke_ok(addr, request(header))
        except RocketMQError as error:
            log.warning("message_not_sent_back", msg_id=message.msg_id, reason=str(error))
            return False
        return True
