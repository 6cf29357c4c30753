"""The reply to a request that was sent as a message.

Source of the rule: MessageUtil.createReplyMessage (Java client).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rmqtools.model.message import Message
from rmqtools.model.message_const import (
    PROPERTY_CORRELATION_ID,
    PROPERTY_MESSAGE_REPLY_TO_CLIENT,
    PROPERTY_MESSAGE_TTL,
    PROPERTY_MESSAGE_TYPE,
)

_REPLY = "reply"  # upstream MixAll.REPLY_MESSAGE_FLAG


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplyMessage(Message):
    """The result of ``create_reply``. Send it by ``Producer.send``; a broker forwards it to the requester.

    Attributes:
        correlation_id: the request that it answers.
        reply_to_client: the id of the requesting client.
        ttl_ms: how long that client waits, counted from its request.
    """

    correlation_id: str
    reply_to_client: str
    ttl_ms: str | None = None

    @property
    def system_properties(self) -> Mapping[str, str]:
        """The properties by which the broker finds the client, and the client its request."""
        properties = {
            PROPERTY_MESSAGE_TYPE: _REPLY,
            PROPERTY_CORRELATION_ID: self.correlation_id,
            PROPERTY_MESSAGE_REPLY_TO_CLIENT: self.reply_to_client,
        }
        return properties | ({PROPERTY_MESSAGE_TTL: self.ttl_ms} if self.ttl_ms else {})
