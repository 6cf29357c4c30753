"""Messages: ``Message`` to send, ``MessageExt`` as stored and received.

``MessageExt`` keeps bytes for fields that were not used yet (``model.message._Stored``). It keeps a decoding
function and bytes, not a closure: containers would keep the garbage collector busy.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from rmqtools.compiled import twins
from rmqtools.model.message_const import (
    KEY_SEPARATOR,
    PROPERTY_KEYS,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from rmqtools.model.queue import MessageQueue

SPARK_STAMP = "SPARK_STAMP"
"""Property of messages written by ``spark_connector`` with option ``stamp``: the row's place in the write."""
SPARK_HASH = "SPARK_HASH"
"""Property beside ``SPARK_STAMP``: a hash over the row, or over its id."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to send. Its ``repr`` shows the size of the body, not the body.

    Attributes:
        topic: the topic to send to.
        body: the content; at least one byte.
        tags: one tag, which consumers can filter by.
        keys: words that the message can be found by: one as a text (``keys="order-1"``), several in a list.
            RocketMQ joins them with a space, so a text with spaces is several keys.
        properties: the user's own. Sending refuses names that RocketMQ reserves.
        flag: any 32 bits for the application.
        sharding_key: ``send_orderly`` keeps messages with the same key in order.
        delay_level: 1 to 18: delivered after that level's delay (1 s, 5 s, 10 s, 30 s, 1 m ... 2 h, unless
            the broker has other settings); 0: at once.
        delay: seconds until delivery; needs brokers 5.x with their timer wheel on.
        deliver_at_ms: time of delivery, in milliseconds since 1970; needs the same brokers.
        priority: 0 or more: the broker stores the message in the queue of this number, or in its last one,
            whatever queue was asked for, and popping consumers get messages of higher queues first;
            needs brokers 5.4 and a topic of ``message_type="PRIORITY"``. None: no priority.
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
    priority: int | None = None

    def __repr__(self) -> str:
        return shown_message(self, _size_of(self.body))

    @property
    def is_alone(self) -> bool:
        """True if the message cannot be in a batch: it has a delay or a priority."""
        return self.is_delayed or self.priority is not None

    @property
    def is_delayed(self) -> bool:
        """True if the message has a delay."""
        return bool(self.delay_level) or self.delay is not None or self.deliver_at_ms is not None

    @property
    def keys_text(self) -> str | None:
        """The KEYS property as stored: keys joined by a space; None without keys."""
        text = self.keys if isinstance(self.keys, str) else KEY_SEPARATOR.join(self.keys)
        return text or None


# A frozen dataclass's own __init__ looks up every field, and takes four times as long.
if twins is not None and (_init := twins.bind_message(Message, Message.__init__)) is not None:
    Message.__init__ = _init  # type: ignore[method-assign]

_APART = attrgetter("delay_level", "delay", "deliver_at_ms", "priority")

topic_of: Callable[[Message], str] = attrgetter("topic")
"""The topic of a message; faster than a function of ours where it is asked of many."""


def may_share_batches(messages: Sequence[Message]) -> bool:
    """Return whether none of the messages :attr:`is alone <Message.is_alone>`."""
    return {*map(_APART, messages)} <= {(0, None, None, None)}


def body_length(body: bytes | bytearray | memoryview) -> int:
    """Return the bytes of a body: ``len`` of a memoryview counts its items, which may be wider."""
    return len(body) if type(body) is bytes else memoryview(body).nbytes


def shown_message(message: "Message | MessageExt", body: str) -> str:
    """Return the ``repr`` of a message: fields that are not at their defaults, and this text as its body."""
    shown = []
    for each in fields(message):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if each.name == "body":
            shown.append(f"body={body}")
        elif (value := getattr(message, each.name)) != default:
            shown.append(f"{each.name}={value!r}")
    return f"{type(message).__qualname__}({', '.join(shown)})"


def _size_of(body: object) -> str:
    if not isinstance(body, bytes | bytearray | memoryview):
        return f"<a {type(body).__name__}>"
    return f"<{body_length(body)} bytes>"


def message_texts(message: Message) -> tuple[str, ...]:
    """Return all texts that are stored in a message's properties; empty texts for missing ones."""
    tags = message.tags
    keys = message.keys_text
    sharding_key = message.sharding_key
    properties = message.properties
    return (
        "" if tags is None else tags,
        "" if keys is None else keys,
        "" if sharding_key is None else sharding_key,
        *properties,
        *properties.values(),
    )


RECEIPT = "receipt"
"""The key of the function that :func:`receipt_of` calls; it fills no slot."""

Filler: TypeAlias = Callable[["MessageExt", bytes, bytes], Any]
"""Fills the slot of a field, perhaps others too, and returns the field's value: from the head of a stored
message (its fields of fixed width) and the bytes of its properties."""


class _Stored:
    """The undecoded part of a message: an empty slot of :class:`MessageExt` is filled at its first use."""

    __slots__ = ("_fillers", "_head", "_properties")

    _fillers: Mapping[str, Filler]
    _head: bytes
    _properties: bytes | None  # None: a copy that has other values than those stored

    if not TYPE_CHECKING:  # to a type checker a class with __getattr__ has every name

        def __getattr__(self, name: str) -> Any:
            if name not in SLOTS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return self._fillers[name](self, self._head, self._properties)


class BodyError(Protocol):
    """The fields of a :class:`rmqtools.errors.CorruptBodyError`."""

    queue: MessageQueue
    offset: int
    why: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class MessageExt(_Stored):
    """A stored message. Hosts are ``address:port`` with IPv6 in brackets; times are milliseconds since 1970.

    ``properties`` holds all of them, the user's and RocketMQ's. ``body`` is decompressed; ``sys_flag`` then
    no longer has the compressed bit, as in the Java client. Reading the ``body`` of a message of which it
    cannot be read raises :class:`rmqtools.errors.CorruptBodyError`; its other fields can be read.
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

    def __repr__(self) -> str:
        return shown_message(self, _size_of(self.body))

    def with_topic(self, topic: str) -> "MessageExt":
        """Return the message with another topic. Decodes nothing."""
        if not hasattr(self, "_fillers") or self._properties is None:
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

    def with_values(self, **values: Any) -> "MessageExt":
        """Return the message with other values in some fields; unlike ``replace``, works with any body."""
        return replace(self, **values)

    @property
    def body_error(self) -> BodyError | None:
        """Reason why the body cannot be read, a :class:`rmqtools.errors.CorruptBodyError`; None: it can."""
        return None

    @property
    def msg_id(self) -> str:
        """The unique key made by the producing client; the offset id if there is none."""
        return self.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) or self.offset_msg_id

    @property
    def tags(self) -> str | None:
        """The TAGS property."""
        return self.properties.get(PROPERTY_TAGS)

    @property
    def keys(self) -> str | None:
        """The KEYS property: keys joined by a space."""
        return self.properties.get(PROPERTY_KEYS)

    @property
    def sharding_key(self) -> str | None:
        """The sharding key that the message was sent with."""
        return self.properties.get(PROPERTY_SHARDING_KEY)


# The slots themselves: the class is frozen, and object.__setattr__ would look each of them up by its name.
SLOTS: Mapping[str, Callable[[MessageExt, Any], None]] = {
    field.name: getattr(MessageExt, field.name).__set__ for field in fields(MessageExt)
}


_UNDECODED = [attrgetter(name) for name in ("_head", "_properties", "_fillers")]
_set_fillers = vars(_Stored)["_fillers"].__set__


class Undecoded(NamedTuple):
    """The bytes of messages that are decoded on use: heads, properties, and what decodes all of them."""

    heads: list[bytes]
    properties: list[bytes]
    fillers: Mapping[str, Filler]


def undecoded_alike(messages: Sequence[MessageExt]) -> Undecoded | None:
    """Return the bytes of stored messages; None: not all of them are decoded on use, in the same way."""
    try:
        heads, texts, fillers = ([*map(get, messages)] for get in _UNDECODED)
    except AttributeError:
        return None
    if not fillers or None in texts or fillers.count(fillers[0]) < len(fillers):
        return None
    return Undecoded(heads, texts, fillers[0])


def set_all(name: str, messages: Sequence[MessageExt], values: Iterable[Any]) -> None:
    """Set a field of messages that were just decoded and have no other reference yet."""
    deque(map(SLOTS[name], messages, values), maxlen=0)


def fillers_of(message: MessageExt) -> Mapping[str, Filler]:
    """Return the functions that decode the fields of a message; none for one that is not decoded on use."""
    return message._fillers if hasattr(message, "_fillers") else {}


def receive_popped(
    messages: Sequence[MessageExt], topic: str, broker_name: str, fillers: Mapping[str, Filler]
) -> None:
    """Set the answer's data in popped messages that were just decoded and have no other reference yet."""
    set_all("topic", messages, repeat(topic))
    set_all("broker_name", messages, repeat(broker_name))
    deque(map(_set_fillers, messages, repeat(fillers)), maxlen=0)


def receipt_of(message: MessageExt) -> tuple[str, int] | None:
    """Return the parts of POP_CK before its queue offset, and this; None: only the property has them."""
    try:
        fill = message._fillers.get(RECEIPT)
    except AttributeError:
        return None
    return None if fill is None else fill(message, b"", b"")


class _Unfrozen(_Stored):
    """A message during its creation: the same slots, but not frozen, so plain stores can fill them."""

    __slots__ = tuple(SLOTS)


def undecoded_message(
    topic: str,
    queue_offset: int,
    body: bytes,
    broker_name: str,
    fillers: Mapping[str, Filler],
    head: bytes,
    properties: bytes | None,
) -> MessageExt:
    """Make a message with the fields that every consumer uses; the others are decoded when they are used.

    Positional arguments: keywords make the call 50 % slower, and every received message is made here.
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
