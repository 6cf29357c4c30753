"""Message types of topics: their attributes, and the meaning of refusals.

Source of the rules: TopicAttributes, AttributeParser (broker 5.5.0), DefaultTopicMessageTypeValidator (proxy
5.5.0).
"""

import re
from collections.abc import Mapping

from rmqtools.errors import ConfigError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.route import MESSAGE_TYPE_ATTRIBUTE
from rmqtools.model.topic_type import TopicMessageType

_SEPARATORS = re.compile(r"[,=]")
_REFUSED = re.compile(r"expected type is (\w+), but actual type is (\w+)")
_MARKS = {
    "NORMAL": "without a delay, a sharding key, a priority or a transaction",
    "FIFO": "with a sharding key",
    "DELAY": "with a delay",
    "TRANSACTION": "in a transaction",
    "PRIORITY": "with a priority",
    "LITE": "with a lite topic",
}


def topic_attributes(
    message_type: TopicMessageType | str | None, attributes: Mapping[str, str | None]
) -> str | None:
    """Write changes of attributes as brokers read them: ``+name=value,-name``; None: no change.

    Raises:
        ConfigError: no such type, the type given twice, or a text with ``,`` or ``=``.
    """
    changes = dict(attributes)
    if message_type is not None:
        if MESSAGE_TYPE_ATTRIBUTE in changes:
            raise ConfigError(
                f"message_type={message_type!r} and attributes[{MESSAGE_TYPE_ATTRIBUTE!r}]: give one"
            )
        changes[MESSAGE_TYPE_ATTRIBUTE] = _checked_type(message_type)
    for name, value in changes.items():
        if not name or _SEPARATORS.search(name + (value or "")):
            raise ConfigError(f"attribute {name!r}={value!r} of a topic: want texts without ',' and '='")
    parts = (f"-{name}" if value is None else f"+{name}={value}" for name, value in changes.items())
    return ",".join(parts) or None


def refused_type_hint(code: int, remark: str | None, topic: str) -> str:
    """Return the remedy for a message that a proxy refused for its type; "" for other answers."""
    found = _REFUSED.search(remark or "") if code == ResponseCode.MESSAGE_ILLEGAL else None
    if found is None:
        return ""
    expected, actual = found.groups()
    return (
        f"topic {topic!r} has the message type {expected}, "
        f"and a message {_MARKS.get(actual, '')} is {actual}: send it to a topic "
        f"made with Admin.create_topic(message_type={actual!r}); 'MIXED' takes all types, where "
        "brokers have enableMixedMessageType=true"
    )


def _checked_type(message_type: TopicMessageType | str) -> str:
    try:
        return TopicMessageType(message_type).value
    except ValueError:
        known = ", ".join(TopicMessageType)
        raise ConfigError(f"message_type={message_type!r}: want one of {known}") from None
