"""Sending a failed message back to its broker, which gives it to the group again, or makes it a dead letter.

Source of the rule: DefaultMQPushConsumerImpl.sendMessageBack (Java client).
"""

from rmqtools.engine.client import ClientCore
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.publish import STATIC_BROKER_PREFIX
from rmqtools.protocol.command import request
from rmqtools.protocol.headers import ConsumerSendMsgBackRequestHeader

log = get_logger(__name__)


class SendBack:
    """The way back for the messages of one group."""

    def __init__(self, client: ClientCore, group: str, *, max_reconsume_times: int) -> None:
        self._client = client
        self._group = group
        self._max_reconsume_times = max_reconsume_times

    async def send(self, message: MessageExt, delay_level: int, *, queue: MessageQueue) -> bool:
        """Whether the broker has taken it.

        Args:
            message: has the topic its user knows, perhaps another one than ``queue``.
            delay_level: when it comes again.
            queue: what it was fetched from, as brokers know it.
        """
        broker_name = self._broker_name(message, queue)
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.commit_log_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.msg_id,
            origin_topic=self._client.wire_topic(message.topic),
            max_reconsume_times=self._max_reconsume_times,
            bname=broker_name,
        )
        try:
            addr = self._client.routes.master_addr(broker_name)
            await self._client.remoting.invoke_ok(addr, request(header))
        except RocketMQError as error:
            log.warning("message_not_sent_back", msg_id=message.msg_id, reason=str(error))
            return False
        return True

    def _broker_name(self, message: MessageExt, queue: MessageQueue) -> str:
        """The broker set that has stored a message: brokers find it by its place in their commit log.

        A static topic's queue may have moved, and leaves what it held at its former broker. The message's own
        queue id says nothing of it: it is the broker's, not the logic queue's.
        """
        routes = self._client.routes
        if not queue.broker_name.startswith(STATIC_BROKER_PREFIX):
            return queue.broker_name
        stored_at = (name for name, addr in routes.masters().items() if addr == message.store_host)
        return next(stored_at, None) or routes.broker_name(queue)
