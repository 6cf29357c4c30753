"""Recall handles: cancel a timer message. The broker returns them in the answer to its send.

    base64url("v1 topic broker_name deliver_at_ms msg_id")

Source of the rule: RecallMessageHandle (Java client).
"""

import base64
from typing import NamedTuple

from rmqtools.errors import MessageRejectedError

_VERSION = "v1"


class RecallHandle(NamedTuple):
    """The parts of a handle."""

    topic: str
    broker_name: str
    deliver_at_ms: int
    msg_id: str


def parse_recall_handle(text: str | None) -> RecallHandle:
    """Parse a handle; words after the fifth are ignored.

    Raises:
        MessageRejectedError: not a handle, or an unknown version.
    """
    if not text:
        raise MessageRejectedError(
            f"no recall handle ({text!r}): take SendResult.recall_handle, which messages with a delay have "
            "from brokers 5.3.2 or newer"
        )
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode()
        version, topic, broker_name, deliver_at_ms, msg_id, *_ = decoded.rstrip(" ").split(" ")
        if version != _VERSION:
            raise ValueError(f"version {version!r}")
        return RecallHandle(topic, broker_name, int(deliver_at_ms), msg_id)
    except ValueError as error:
        raise MessageRejectedError(
            f"recall handle {text!r} is none: take SendResult.recall_handle"
        ) from error
