"""The key of a message: two messages with equal keys are copies of each other."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from rmqtools.model.message import SPARK_HASH, SPARK_STAMP, MessageExt
from rmqtools.model.message_const import PROPERTY_ORIGIN_MESSAGE_ID, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX

KeyFunction = Callable[[MessageExt], str | None]
KEY_LENGTH: Final = 32
"""Characters of a key: 128 bits in hex, whatever the length of topic and id."""


def message_key(message: MessageExt, key: KeyFunction | None = None) -> str:
    """Return the key that stores remember, as 32 hex digits.

    The first of these that the message has decides, together with its topic: the text that ``key`` returns;
    the stamp and hash that a Spark write with ``stamp`` sets; the unique key that the sending client made,
    which every attempt of one send has in common; the offset id.
    """
    parts = (message.topic, *_identity(message, key))
    text = "\0".join(f"{len(part)}:{part}" for part in parts)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_LENGTH // 2).hexdigest()


def _identity(message: MessageExt, key: KeyFunction | None) -> tuple[str, ...]:
    if key is not None and (own := key(message)) is not None:
        if not isinstance(own, str) or not own:
            raise TypeError(
                f"key() returned {own!r} for message {message.msg_id}: want a text, or None for none"
            )
        return ("key", own)
    properties = message.properties
    if stamp := properties.get(SPARK_STAMP):
        return ("stamp", stamp, properties.get(SPARK_HASH, ""))
    if unique := properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX):
        return ("unique", unique)
    return ("offset", properties.get(PROPERTY_ORIGIN_MESSAGE_ID) or message.offset_msg_id)
