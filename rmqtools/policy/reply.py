"""Makes the reply to a request that came as a message.

Source of the rule: MessageUtil.createReplyMessage, MixAll.getReplyTopic (Java client).
"""

from collections.abc import Mapping, Sequence

from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import (
    PROPERTY_CLUSTER,
    PROPERTY_CORRELATION_ID,
    PROPERTY_MESSAGE_REPLY_TO_CLIENT,
    PROPERTY_MESSAGE_TTL,
)
from rmqtools.model.names import REPLY_TOPIC_POSTFIX
from rmqtools.model.reply import ReplyMessage

_NOTHING: Mapping[str, str] = {}


def create_reply(
    request: MessageExt,
    body: bytes,
    *,
    tags: str | None = None,
    keys: Sequence[str] | str = (),
    properties: Mapping[str, str] = _NOTHING,
) -> ReplyMessage:
    """Make the reply to a message of ``Producer.request``; send it with ``send`` of any producer.

    Raises:
        MessageRejectedError: the message was not sent as a request.
    """
    needed = (PROPERTY_CLUSTER, PROPERTY_CORRELATION_ID, PROPERTY_MESSAGE_REPLY_TO_CLIENT)
    if missing := [name for name in needed if not request.properties.get(name)]:
        raise MessageRejectedError(
            f"message {request.msg_id} is no request: it lacks the properties {', '.join(missing)}"
        )
    return ReplyMessage(
        reply_topic(request.properties[PROPERTY_CLUSTER]),
        body,
        tags,
        keys,
        properties,
        correlation_id=request.properties[PROPERTY_CORRELATION_ID],
        reply_to_client=request.properties[PROPERTY_MESSAGE_REPLY_TO_CLIENT],
        ttl_ms=request.properties.get(PROPERTY_MESSAGE_TTL),
    )


def reply_topic(cluster: str) -> str:
    """Return the topic of a cluster's replies; each of its brokers has it."""
    return f"{cluster}_{REPLY_TOPIC_POSTFIX}"
