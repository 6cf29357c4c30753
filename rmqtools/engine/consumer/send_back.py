"""Sends a failed message back to its broker, which delivers it again or makes it a dead letter.

Brokers find a message by its commit log offset. For a message of a stored batch that offset has the whole
batch, and brokers refuse to put a batch into a retry topic. So it is sent to that topic as a new message.

Source of the rules: DefaultMQPushConsumerImpl.sendMessageBack, sendMessageBackAsNormalMessage (Java client,
for static topics), AbstractSendMessageProcessor.handleRetryAndDLQ (broker). Ours: a message of a batch is
sent at once, without trying to send it back.
"""

from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model import message_const as const
from rmqtools.model.message import MessageExt
from rmqtools.model.names import CLIENT_INNER_PRODUCER_GROUP, retry_topic
from rmqtools.model.queue import MessageQueue
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.policy.publish import is_static
from rmqtools.policy.redelivery import NO_MORE_TRIES
from rmqtools.policy.route_update import DEFAULT_TOPIC
from rmqtools.protocol.headers.send import ConsumerSendMsgBackRequestHeader, SendMessageRequestHeaderV2
from rmqtools.protocol.messages.corrupt_message import raw_message
from rmqtools.protocol.messages.inner_batch import is_inner_batch
from rmqtools.protocol.messages.properties import format_properties
from rmqtools.protocol.wire.command import RemotingCommand, request

log = get_logger(__name__)
_FIRST_DELAY_LEVEL = 3  # of the first retry; each further retry waits one level longer
_KEPT_FLAGS = int(MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_TYPE_COMPARATOR)
_DROPPED = (
    const.PROPERTY_TRANSACTION_PREPARED,
    const.PROPERTY_INNER_NUM,
    const.PROPERTY_POP_CK,
    const.PROPERTY_FIRST_POP_TIME,
)


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


def resend_request(
    message: MessageExt,
    delay_level: int,
    *,
    group: str,
    wire_topic: str,
    max_reconsume_times: int,
    broker_name: str,
) -> RemotingCommand:
    """Return the request that stores a failed message again; a corrupt body is stored unchanged.

    Args:
        message: the failed message.
        delay_level: delay until redelivery; 0: grows with each retry; -1: make a dead letter.
        group: group whose retry topic gets the message.
        wire_topic: the topic it was sent to.
        max_reconsume_times: after more tries the broker makes it a dead letter.
        broker_name: the broker that stored the message.
    """
    times = message.reconsume_times + 1
    properties = {name: value for name, value in message.properties.items() if name not in _DROPPED}
    properties.setdefault(const.PROPERTY_ORIGIN_MESSAGE_ID, message.msg_id)
    properties[const.PROPERTY_RETRY_TOPIC] = wire_topic
    if delay_level == NO_MORE_TRIES:
        max_reconsume_times = 0
    else:
        level = delay_level or _FIRST_DELAY_LEVEL + message.reconsume_times
        properties[const.PROPERTY_DELAY_TIME_LEVEL] = str(level)
    header = SendMessageRequestHeaderV2(
        producer_group=CLIENT_INNER_PRODUCER_GROUP,
        topic=retry_topic(group),
        default_topic=DEFAULT_TOPIC,
        default_topic_queue_nums=1,
        queue_id=0,
        sys_flag=message.sys_flag & _KEPT_FLAGS,
        born_timestamp=message.born_timestamp_ms,
        flag=message.flag,
        properties=format_properties(properties),
        reconsume_times=times,
        unit_mode=False,
        max_reconsume_times=max_reconsume_times,
        broker_name=broker_name,
    )
    return request(header, raw_message(message).body)
