"""The handle that takes a timer message back, given by the broker with the send's answer.

    base64url("v1 topic broker_name deliver_at_ms msg_id")

Source of the rule: RecallMessageHandle (Java client).
"""

import base64
import binascii
from typing import NamedTuple

from rmqtools.errors import MessageRejectedError

_VERSION = "v1"


class RecallHandle(NamedTuple):
    """What a handle says."""

    topic: str
    broker_name: str
    deliver_at_ms: int
    msg_id: str


def parse_recall_handle(text: str) -> RecallHandle:
    """Read a handle.

    Raises:
        MessageRejectedError: no handle, or of a version this client does not know.
    """
    try:
        version, topic, broker_name, deliver_at_ms, msg_id = (
            base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().split(" ")
        )
        if version != _VERSION:
            raise ValueError(f"version {version!r}")
        return RecallHandle(topic, broker_name, int(deliver_at_ms), msg_id)
    except (ValueError, binascii.Error) as error:
        raise MessageRejectedError(
            f"recall handle {text!r} is none: take SendResult.recall_handle"
        ) from error
