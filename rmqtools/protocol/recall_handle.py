"""The handle that takes a timer message back, given by the broker with the send's answer.

    base64url("v1 topic broker_name deliver_at_ms msg_id")

Source of the rule: RecallMessageHandle (Java client).
"""

import base64
from typing import NamedTuple

from rmqtools.errors import MessageRejectedError

_VERSION = "v1"


class RecallHandle(NamedTuple):
    """What a handle says."""

    topic: str
    broker_name: str
    deliver_at_ms: int
    msg_id: str


def parse_recall_handle(text: str | None) -> RecallHandle:
    """Read a handle; words after the fifth are passed over.

    Raises:
        MessageRejectedError: no handle, or of a version this client does not know.
    """
    try:
        if not text:
            raise ValueError("empty")
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode()
        version, topic, broker_name, deliver_at_ms, msg_id, *_ = decoded.rstrip(" ").split(" ")
        if version != _VERSION:
            raise ValueError(f"version {version!r}")
        return RecallHandle(topic, broker_name, int(deliver_at_ms), msg_id)
    except ValueError as error:
        raise MessageRejectedError(
            f"recall handle {text!r} is none: take SendResult.recall_handle"
        ) from error
