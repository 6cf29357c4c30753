"""The message that is sent when a stored one is to be sent again, as a new message.

    part of the stored message                             in the copy
    body, tags, keys, flag                                 as stored
    properties that users may set                          as stored
    the sharding key                                       as stored
    SYSTEM_PROPERTIES, of brokers and clients              left out: sending makes new ones
    place, ids, times, hosts, failures                     left out

``spark_connector.write.copied_rows`` does the same for rows. A failed message that goes back to its own group
is no copy: ``engine.consumer.send_back``.
"""

from collections.abc import Mapping

from rmqtools.model.append_mark import APPEND_MARK
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.message_const import (
    PROPERTY_DLQ_ORIGIN_TOPIC,
    PROPERTY_RETRY_TOPIC,
    SET_BY_ROCKETMQ,
)
from rmqtools.model.mirror import MIRROR_WAY
from rmqtools.model.names import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX

SYSTEM_PROPERTIES = SET_BY_ROCKETMQ | {APPEND_MARK, MIRROR_WAY}
"""Properties that no new message takes over from a stored one.

A copy with the mark of an exact appender would count as stored by it; one with the way of a mirror would not
be mirrored.
"""


def copy_message(message: MessageExt, topic: str) -> Message:
    """Return a new message for ``topic`` with everything that users gave the stored one."""
    return Message(
        topic,
        message.body,
        tags=message.tags,
        keys=message.keys or (),
        properties=own_properties(message.properties),
        flag=message.flag,
        sharding_key=message.sharding_key,
    )


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those of a stored message's properties that a copy of it has."""
    return {name: value for name, value in properties.items() if name not in SYSTEM_PROPERTIES}


def origin_topic(message: MessageExt) -> str | None:
    """Return the topic that a failed message was first sent to; None if it does not say.

    Source of the rule: AbstractSendMessageProcessor.consumerSendMsgBack (broker) sets RETRY_TOPIC. For popped
    messages that may name their own retry topic, which is not the origin.
    """
    for name in (PROPERTY_RETRY_TOPIC, PROPERTY_DLQ_ORIGIN_TOPIC):
        topic = message.properties.get(name)
        if topic and not topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)):
            return topic
    return None
