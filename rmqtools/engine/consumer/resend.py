"""Sends a failed message of a stored batch as a new message to the retry topic of its group.

Brokers find a message that is sent back by its commit log offset. At that offset the whole batch is stored,
and brokers refuse to put a batch into a retry topic.
Source of the rule: DefaultMQPushConsumerImpl.sendMessageBackAsNormalMessage (Java client, for static topics),
AbstractSendMessageProcessor.handleRetryAndDLQ (broker). Ours: sent at once, without trying to send it back.
"""

from rmqtools.model import message_const as const
from rmqtools.model.message import MessageExt
from rmqtools.model.names import CLIENT_INNER_PRODUCER_GROUP, retry_topic
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.policy.redelivery import NO_MORE_TRIES
from rmqtools.policy.route_update import DEFAULT_TOPIC
from rmqtools.protocol.headers.send import SendMessageRequestHeaderV2
from rmqtools.protocol.messages.corrupt_message import raw_message
from rmqtools.protocol.messages.properties import format_properties
from rmqtools.protocol.wire.command import RemotingCommand, request

_FIRST_DELAY_LEVEL = 3  # of the first retry; each further retry waits one level longer
_KEPT_FLAGS = int(MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_TYPE_COMPARATOR)
_DROPPED = (
    const.PROPERTY_TRANSACTION_PREPARED,
    const.PROPERTY_INNER_NUM,
    const.PROPERTY_POP_CK,
    const.PROPERTY_FIRST_POP_TIME,
)


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
