"""Sends a failed message back to its broker, which delivers it again or makes it a dead letter.

Source of the rule: DefaultMQPushConsumerImpl.sendMessageBack (Java client).
"""

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.consumer.resend import resend_request
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.publish import is_static
from rmqtools.protocol.headers.send import ConsumerSendMsgBackRequestHeader
from rmqtools.protocol.messages.inner_batch import is_inner_batch
from rmqtools.protocol.wire.command import RemotingCommand, request

log = get_logger(__name__)


class SendBack:
    """Sends back messages of one group."""

    def __init__(self, client: ClientCore, group: str, *, max_reconsume_times: int) -> None:
        self._client = client
        self._group = group
        self._max_reconsume_times = max_reconsume_times

    async def send(self, message: MessageExt, delay_level: int, *, queue: MessageQueue) -> bool:
        """Send a failed message back; return whether the broker accepted it.

        Args:
            message: the message, with its plain topic; that may differ from the topic of ``queue``.
            delay_level: delay until redelivery.
            queue: the queue it was fetched from (wire names).
        """
        broker_name = self._broker_name(message, queue)
        try:
            addr = self._client.routes.master_addr(broker_name)
            await self._client.remoting.invoke_ok(addr, self._request(message, delay_level, broker_name))
        except RocketMQError as error:
            log.warning("message_not_sent_back", msg_id=message.msg_id, reason=str(error))
            return False
        return True

    def _request(self, message: MessageExt, delay_level: int, broker_name: str) -> RemotingCommand:
        if is_inner_batch(message.sys_flag):
            return resend_request(
                message,
                delay_level,
                group=self._group,
                wire_topic=self._client.wire_topic(message.topic),
                max_reconsume_times=self._max_reconsume_times,
                broker_name=broker_name,
            )
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.commit_log_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.msg_id,
            origin_topic=self._client.wire_topic(message.topic),
            max_reconsume_times=self._max_reconsume_times,
            bname=broker_name,
        )
        return request(header)

    def _broker_name(self, message: MessageExt, queue: MessageQueue) -> str:
        """Return the broker set that stored a message: brokers find it by its offset in their commit log.

        A moved queue of a static topic leaves its earlier messages on its former broker. The message's queue
        id does not help, because it is the broker's and not the logic queue's.
        """
        routes = self._client.routes
        if not is_static(queue):
            return queue.broker_name
        stored_at = (name for name, addr in routes.masters().items() if addr == message.store_host)
        return next(stored_at, None) or routes.broker_name(queue)
