"""Messages to send, and messages received."""

import re
from typing import SupportsIndex

import rmqtools
from rmqtools.compat.consts import MessageProperty
from rmqtools.compat.exceptions import NullPointerException, RocketMQException
from rmqtools.errors import MessageRejectedError
from rmqtools.model.message_const import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
)

Text = str | bytes


class Message:
    """A message to send. Text is stored as UTF-8.

    Args:
        topic: the topic to send to.

    Raises:
        NullPointerException: by every method, for None.
        TypeError: by every method, for a value that is neither text nor bytes.
    """

    def __init__(self, topic: Text) -> None:
        self._topic = to_text("topic", topic)
        self._body = b""
        self._properties: dict[str, str] = {}

    def set_keys(self, keys: Text) -> None:
        """Set the words that the message can be found by, separated by spaces."""
        self.set_property(PROPERTY_KEYS, keys)

    def set_tags(self, tags: Text) -> None:
        """Set the tag that consumers can filter by."""
        self.set_property(PROPERTY_TAGS, tags)

    def set_body(self, body: str | bytes | bytearray | memoryview) -> None:
        """Set the content: at least one byte when it is sent. Bytes are stored whole, NUL bytes too."""
        self._body = bytes(body) if isinstance(body, bytearray | memoryview) else _to_bytes("body", body)

    def set_property(self, key: Text | MessageProperty, value: Text) -> None:
        """Set a property; an empty value removes it, as readers see no difference."""
        name, text = property_name(key), to_text("property value", value)
        if text:
            self._properties[name] = text
        else:
            self._properties.pop(name, None)

    def set_delay_time_level(self, delay_time_level: SupportsIndex) -> None:
        """Deliver the message after a delay level's time: 1 to 18, 0 for at once."""
        self.set_property(PROPERTY_DELAY_TIME_LEVEL, str(delay_time_level.__index__()))


class ReceivedMessage:
    """A message as callbacks get it. It stays valid after the callback has returned."""

    def __init__(self, message: "rmqtools.MessageExt | rmqtools.HalfMessage") -> None:
        self._message = message

    @property
    def topic(self) -> str:
        """The topic; for a message that is delivered again the topic it was sent to."""
        return self._message.topic

    @property
    def tags(self) -> bytes:
        """The tag; empty if none is set."""
        return self.get_property(PROPERTY_TAGS)

    @property
    def keys(self) -> bytes:
        """The keys, separated by spaces; empty if none are set."""
        return self.get_property(PROPERTY_KEYS)

    @property
    def body(self) -> bytes:
        """All bytes of the content, decompressed."""
        return self._message.body

    @property
    def id(self) -> str:
        """The id that the sender's ``SendResult`` has."""
        half = isinstance(self._message, rmqtools.HalfMessage)
        return self._message.transaction_id if half else self._message.msg_id  # type: ignore[union-attr]

    @property
    def delay_time_level(self) -> int:
        """The delay level: the sender's, or that of a retry; 0 without one."""
        text = self.get_property(PROPERTY_DELAY_TIME_LEVEL)
        return int(text) if text.isdigit() else 0

    @property
    def queue_id(self) -> int:
        """The id of its queue at its broker."""
        return self._number("queue_id")

    @property
    def reconsume_times(self) -> int:
        """Number of failures so far."""
        return self._number("reconsume_times")

    @property
    def store_size(self) -> int:
        """Bytes that it takes in the broker's commit log."""
        return self._number("store_size_bytes")

    @property
    def born_timestamp(self) -> int:
        """Time of the send, in milliseconds since 1970."""
        return self._number("born_timestamp_ms")

    @property
    def store_timestamp(self) -> int:
        """Time of storing, in milliseconds since 1970."""
        return self._number("store_timestamp_ms")

    @property
    def queue_offset(self) -> int:
        """Its offset in its queue."""
        return self._number("queue_offset")

    @property
    def commit_log_offset(self) -> int:
        """Its offset in the broker's commit log."""
        return self._number("commit_log_offset")

    @property
    def prepared_transaction_offset(self) -> int:
        """The commit log offset of its half message; 0 outside transactions."""
        return self._number("prepared_transaction_offset")

    def get_property(self, prop: Text | MessageProperty) -> bytes:
        """Return a property; empty if it is not set."""
        name = property_name(prop)
        text = self._message.properties.get(name)
        if text is None and isinstance(self._message, rmqtools.HalfMessage):  # its properties are the user's
            known = {PROPERTY_TAGS: self._message.tags, PROPERTY_KEYS: self._message.keys_text}
            text = known.get(name)
        return (text or "").encode()

    def __getitem__(self, key: Text | MessageProperty) -> bytes:
        return self.get_property(key)

    def __str__(self) -> str:
        return self.body.decode()

    def __bytes__(self) -> bytes:
        return self.body

    def __repr__(self) -> str:
        return f"<ReceivedMessage topic={self.topic!r} id={self.id!r} body={self.body!r}>"

    def _number(self, name: str) -> int:
        """Return a field of a stored message; 0 in a half message, whose place is not known yet."""
        value: int = getattr(self._message, name, 0)
        return value


def plain_message(message: Message, sharding_key: str | None = None) -> "rmqtools.Message":
    """Return what our producers send for a message.

    Raises:
        NullPointerException: it is None.
        TypeError: it is no :class:`Message`.
        MessageRejectedError: its delay level is no whole number.
    """
    if message is None:
        raise NullPointerException("the message is None: make a Message(topic)")
    if not isinstance(message, Message):
        raise TypeError(f"{message!r} is {type(message).__name__}: want a rmqtools.compat.client.Message")
    properties = dict(message._properties)
    level = properties.pop(PROPERTY_DELAY_TIME_LEVEL, "0")
    if not re.fullmatch("-?[0-9]+", level):
        raise MessageRejectedError(f"property DELAY {level!r}: want 1 to 18, or 0 for none")
    return rmqtools.Message(
        message._topic,
        message._body,
        tags=properties.pop(PROPERTY_TAGS, None),
        keys=properties.pop(PROPERTY_KEYS, ""),
        delay_level=int(level),
        properties=properties,
        sharding_key=sharding_key,
    )


def to_text(what: str, value: Text) -> str:
    """Text of text or UTF-8 bytes.

    Raises:
        NullPointerException, TypeError, RocketMQException: it is None, of another type, or not UTF-8.
    """
    try:
        return value if isinstance(value, str) else _to_bytes(what, value).decode()
    except UnicodeDecodeError as error:
        raise RocketMQException(
            f"{what} {value!r} is not UTF-8: encode it, or put it into the body"
        ) from error


def property_name(key: Text | MessageProperty) -> str:
    """Return the name of a property as it is stored."""
    return key.value if isinstance(key, MessageProperty) else to_text("property name", key)


def _to_bytes(what: str, value: Text) -> bytes:
    if value is None:
        raise NullPointerException(f"{what} is None: give text or bytes")
    if not isinstance(value, str | bytes):
        raise TypeError(f"{what} {value!r} is {type(value).__name__}: want text or bytes")
    return value.encode() if isinstance(value, str) else value
