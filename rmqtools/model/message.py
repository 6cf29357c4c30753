"""What is sent, and what comes back from a queue."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from rmqtools.model.message_const import (
    KEY_SEPARATOR,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)


@dataclass(frozen=True, slots=True)
class Message:
    """A message to send.

    Attributes:
        topic: where to.
        body: what; at least one byte.
        tags: the one tag consumers may filter by.
        keys: the words it can be found by; RocketMQ joins them with a space.
        properties: the user's own; names that RocketMQ reserves are refused when the message is sent.
        flag: any 32 bits for the application.
        sharding_key: messages of one key stay in order when sent by ``send_orderly``.
        delay_level: 1 to 18, deliver after that level's delay (1 s, 5 s, 10 s, 30 s, 1 m ... 2 h unless the
            broker is set otherwise); 0: at once.
        delay: seconds until it is delivered; for brokers 5.x with their timer wheel on.
        deliver_at_ms: when it is delivered, in milliseconds since 1970; for the same brokers.
    """

    topic: str
    body: bytes
    tags: str | None = None
    keys: Sequence[str] | str = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    flag: int = 0
    sharding_key: str | None = None
    delay_level: int = 0
    delay: float | None = None
    deliver_at_ms: int | None = None

    @property
    def is_delayed(self) -> bool:
        """Whether it is to be delivered later."""
        return bool(self.delay_level) or self.delay is not None or self.deliver_at_ms is not None

    @property
    def keys_text(self) -> str | None:
        """The KEYS property as stored: keys joined by a space, None when there are none."""
        text = self.keys if isinstance(self.keys, str) else KEY_SEPARATOR.join(self.keys)
        return text or None


def message_texts(message: Message) -> tuple[str, ...]:
    """All that is stored among a message's properties, each text once: empty ones where there is none."""
    tags, keys, sharding_key = message.tags, message.keys_text, message.sharding_key
    properties = message.properties
    return (
        "" if tags is None else tags,
        "" if keys is None else keys,
        "" if sharding_key is None else sharding_key,
        *properties,
        *properties.values(),
    )


Filler: TypeAlias = Callable[["MessageExt", bytes, bytes], Any]
"""Fills the slot of a field, perhaps others too, and returns the field's value: from the head of a stored
message (its fields of fixed width) and the bytes of its properties."""


class _Stored:
    """What a message holds undecoded: an empty slot of :class:`MessageExt` is filled when it is asked for."""

    __slots__ = ("_fillers", "_head", "_properties")

    _fillers: Mapping[str, Filler]
    _head: bytes
    _properties: bytes

    if not TYPE_CHECKING:  # to a type checker a class with __getattr__ has every name

        def __getattr__(self, name: str) -> Any:
            if name not in SLOTS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return self._fillers[name](self, self._head, self._properties)


@dataclass(frozen=True, slots=True)
class MessageExt(_Stored):
    """A stored message. Hosts are ``address:port``, IPv6 in brackets; times are milliseconds since 1970.

    ``properties`` holds all of them, the user's and RocketMQ's. ``body`` is decompressed; ``sys_flag`` then
    no longer has the compressed bit, as in the Java client.
    """

    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    body: bytes
    properties: Mapping[str, str]
    flag: int
    sys_flag: int
    born_timestamp_ms: int
    born_host: str
    store_timestamp_ms: int
    store_host: str
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    body_crc: int = 0
    store_size_bytes: int = 0
    offset_msg_id: str = ""
    broker_name: str = ""

    def with_topic(self, topic: str) -> "MessageExt":
        """The same message of another topic; what is undecoded stays so."""
        if not hasattr(self, "_fillers"):
            return replace(self, topic=topic)
        return undecoded_message(
            topic,
            self.queue_offset,
            self.body,
            self.broker_name,
            self._fillers,
            self._head,
            self._properties,
        )

    @property
    def msg_id(self) -> str:
        """The unique key the producing client made; the offset id where it made none."""
        return self.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) or self.offset_msg_id

    @property
    def tags(self) -> str | None:
        """The TAGS property."""
        return self.properties.get(PROPERTY_TAGS)

    @property
    def keys(self) -> str | None:
        """The KEYS property: keys joined by a space."""
        return self.properties.get(PROPERTY_KEYS)


# The slots themselves: the class is frozen, and object.__setattr__ would look each of them up by its name.
SLOTS: Mapping[str, Callable[[MessageExt, Any], None]] = {
    field.name: getattr(MessageExt, field.name).__set__ for field in fields(MessageExt)
}


class _Unfrozen(_Stored):
    """A message while it is made: the same slots, but its class is not frozen, so they take plain stores."""

    __slots__ = tuple(SLOTS)


def undecoded_message(
    topic: str,
    queue_offset: int,
    body: bytes,
    broker_name: str,
    fillers: Mapping[str, Filler],
    head: bytes,
    properties: bytes,
) -> MessageExt:
    """A message with what every consumer looks at; the rest is decoded when it is asked for.

    By position: keywords take half as long again for the call, and every message that is read is made here.
    """
    message: Any = _Unfrozen()
    message.topic = topic
    message.queue_offset = queue_offset
    message.body = body
    message.broker_name = broker_name
    message._fillers = fillers
    message._head = head
    message._properties = properties
    message.__class__ = MessageExt
    return message  # type: ignore[no-any-return]
