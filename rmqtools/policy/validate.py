"""Validates messages and names before anything is sent.

Source of the rules: Validators, TopicValidator (Java client); the limit of all properties together is the
broker's (a signed 16-bit length in the stored message).

Group names have at most 120 characters, topics 127 (Validators of 5.5.0).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from rmqtools.compiled import twins
from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import Message, body_length, may_share_batches, message_texts, topic_of
from rmqtools.model.message_const import KEY_SEPARATOR, RESERVED_PROPERTIES
from rmqtools.model.names import (
    FORBIDDEN_SEND_TOPICS,
    LEGAL_NAME,
    MAX_TOPIC_LENGTH,
    RETRY_GROUP_TOPIC_PREFIX,
)

MAX_GROUP_LENGTH = 120  # names of retry topics contain it; upstream GROUP_MAX_LENGTH
MAX_DELAY_LEVEL = 18  # of a broker's default messageDelayLevel
MAX_USER_PROPERTIES_BYTES = 32767 - 512  # RocketMQ's own properties need the rest
_SEPARATORS = ("\x01", "\x02")
_ODD = (*_SEPARATORS, "||")
_TEXT, _WORDS = {str, type(None)}, {str, tuple, list}
_TRIMMED = "".join(map(chr, range(0x21)))  # what String.trim removes (FilterAPI.buildSubscriptionData)
_FIELDS = attrgetter("topic", "body", "flag", "tags", "keys", "sharding_key", "properties")
_BODY_TYPES = (bytes, bytearray, memoryview)
_ENDLESS_SECONDS = 1e15  # brokers take milliseconds in 64 bits
_MAX_SEEN_TOPICS = 1024
_seen_topics: set[str] = set()  # names that were valid, so they need no second check


def check_name(kind: str, name: str, max_length: int) -> None:
    """Refuse a topic or group name that brokers would refuse.

    Raises:
        MessageRejectedError: it is empty, too long, or has a character outside ``%|a-zA-Z0-9_-``.
    """
    if not isinstance(name, str):
        raise MessageRejectedError(f"{kind} {name!r} is a {type(name).__name__}: want one name, as text")
    if not name.strip():
        raise MessageRejectedError(f"{kind} {name!r} is empty: give a name")
    if len(name) > max_length:
        raise MessageRejectedError(
            f"{kind} {name!r} has {len(name)} characters: at most {max_length} are allowed"
        )
    if not LEGAL_NAME.fullmatch(name):
        raise MessageRejectedError(f"{kind} {name!r} has an illegal character: allowed are %|a-zA-Z0-9_-")


def check_message(message: Message, max_message_bytes: int) -> int | None:
    """Refuse a message that could not be stored or read back unchanged.

    Returns:
        The bytes of body and texts of a message that can share a batch, if they are known; else None.

    Raises:
        MessageRejectedError: names the part, its value and the limit.
    """
    if twins is not None:
        size: int | None = twins.allowed_size(
            message, max_message_bytes, MAX_USER_PROPERTIES_BYTES, _seen_topics, RESERVED_PROPERTIES
        )
        if size is not None:
            return size
    if not isinstance(message, Message):
        raise MessageRejectedError(
            f"a {type(message).__name__} is no message: want a Message, as in Message('topic', b'body'); "
            "send_many takes several"
        )
    body = message.body
    _check_topic(message.topic)
    if type(body) is not bytes or not 0 < len(body) <= max_message_bytes:
        _check_body(body, max_message_bytes)
    _check_texts(message)
    _check_words(message)
    if not (_is_int(message.flag) and -(2**31) <= message.flag < 2**31):
        raise MessageRejectedError(f"flag={message.flag!r}: want a signed 32-bit number")
    if message.is_delayed:
        _check_delay(message)
    if message.priority is not None:
        _check_priority(message, message.priority)
    return None


class Checked(NamedTuple):
    """Values computed while messages were checked (:func:`check_messages`).

    Attributes:
        are_ordinary: no subclass of Message, and none with a delay or a priority. False: there may be some.
        sizes: for each message the bytes of its body and texts, plus ``fixed_bytes``; None: not known.
    """

    are_ordinary: bool
    sizes: list[int] | None = None


def check_messages(messages: Sequence[Message], max_message_bytes: int, fixed_bytes: int = 0) -> Checked:
    """Refuse messages of which one could not be stored, as :func:`check_message` does, which looks at each.

    Lists of ordinary messages are looked at together, in a quarter of the time. ``fixed_bytes``: what a batch
    adds to each message, for ``Checked.sizes``.
    """
    limits = max_message_bytes, MAX_USER_PROPERTIES_BYTES, _seen_topics, RESERVED_PROPERTIES
    if twins is not None:
        sizes = twins.allowed_sizes([*messages], *limits, fixed_bytes)
        if sizes is not None:
            return Checked(are_ordinary=True, sizes=sizes)
    if _are_ordinary(messages, max_message_bytes):
        return Checked(are_ordinary=True)
    for message in messages:
        check_message(message, max_message_bytes)
    return Checked(are_ordinary=False)


def _are_ordinary(messages: Sequence[Message], max_message_bytes: int) -> bool:
    """Return whether no message can be wrong. False where only a look at each can tell."""
    if {*map(type, messages)} != {Message}:
        return False
    topics, bodies, flags, tags, keys, sharding_keys, properties = zip(*map(_FIELDS, messages), strict=True)
    kinds = (bodies, {bytes}), (tags, _TEXT), (keys, _WORDS), (sharding_keys, _TEXT), (properties, {dict})
    if not all(allowed.issuperset(map(type, values)) for values, allowed in kinds):
        return False
    lengths = [*map(len, bodies)]
    if not (min(lengths) > 0 and max(lengths) <= max_message_bytes):
        return False
    try:
        if not (_seen_topics.issuperset(topics) and {*flags} == {0} and may_share_batches(messages)):
            return False
        named = [each for each in properties if each]
        different = {*filter(None, tags)}
        if any(tag != tag.strip(_TRIMMED) for tag in different) or any(map(_have_blanks, keys)):
            return False
        texts = [*different, *filter(None, {*sharding_keys}), *_joined_keys(keys)]
        return _are_ordinary_texts(texts, named)
    except TypeError:  # not text, or a value that cannot be in a set
        return False


def _have_blanks(keys: str | Sequence[str]) -> bool:
    return type(keys) is not str and any(KEY_SEPARATOR in key for key in keys)


def _joined_keys(keys: Iterable[str | Sequence[str]]) -> list[str]:
    return [key if type(key) is str else KEY_SEPARATOR.join(key) for key in keys if key]


def _are_ordinary_texts(texts: Sequence[str], named: Sequence[Mapping[str, str]]) -> bool:
    """Return whether the texts of messages, and names and values of their properties, are surely right."""
    names = [*chain.from_iterable(named)]
    texts = [*texts, *names, *chain.from_iterable(each.values() for each in named)]
    whole = "".join(texts)
    fields = 3 + 2 * max(map(len, named), default=0)
    longest = max(map(len, texts), default=0)
    return (
        whole.isascii()
        and not any(odd in whole for odd in _ODD)
        and fields * longest <= MAX_USER_PROPERTIES_BYTES - fields
        and "" not in texts
        and RESERVED_PROPERTIES.isdisjoint(names)
    )


def check_list(messages: object) -> None:
    """Refuse what is no sequence of messages, such as one message or a generator.

    Raises:
        MessageRejectedError: names its type.
    """
    if not isinstance(messages, Sequence):
        raise MessageRejectedError(f"messages is a {type(messages).__name__}: want a list of messages")


def check_batch(messages: Sequence[Message], *, are_ordinary: bool = False) -> None:
    """Refuse messages that cannot share a batch; each must have passed :func:`check_message`.

    ``are_ordinary``: as of :func:`check_messages`.

    Raises:
        MessageRejectedError: no message, two topics, or a message with a delay or a priority.
    """
    if not messages:
        raise MessageRejectedError("a batch of no messages: give at least one")
    if len(topics := {*map(topic_of, messages)}) > 1:
        raise MessageRejectedError(f"a batch has one topic, not {sorted(topics)}: use send_many")
    if not are_ordinary and not may_share_batches(messages):
        if any(message.is_delayed for message in messages):
            raise MessageRejectedError("a message with a delay cannot be in a batch: use send or send_many")
        raise MessageRejectedError("a message with a priority cannot be in a batch: use send or send_many")
    if messages[0].topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
        raise MessageRejectedError(f"a batch cannot go to the retry topic {messages[0].topic!r}")


def _is_int(value: object) -> bool:
    return isinstance(value, int)


def _check_topic(topic: str) -> None:
    if isinstance(topic, str):
        topic = str.__str__(topic)  # of a subclass the text itself: it may compare by code of its own
        if topic in _seen_topics:
            return
    check_name("topic", topic, MAX_TOPIC_LENGTH)
    if topic in FORBIDDEN_SEND_TOPICS:
        raise MessageRejectedError(f"topic {topic!r} is RocketMQ's own: sending to it is forbidden")
    if len(_seen_topics) < _MAX_SEEN_TOPICS:
        _seen_topics.add(topic)


def _check_body(body: object, max_message_bytes: int) -> None:
    if not isinstance(body, _BODY_TYPES):
        raise MessageRejectedError(f"body is {type(body).__name__}: want bytes; encode text first")
    if (length := body_length(body)) == 0:
        raise MessageRejectedError("body is empty: RocketMQ stores no message without a body")
    if length > max_message_bytes:
        raise MessageRejectedError(
            f"body has {length} bytes, more than max_message_bytes={max_message_bytes}: "
            "raise it here and maxMessageSize on the brokers, or split the body"
        )


def _check_texts(message: Message) -> None:
    """Check all texts together; if one is wrong, check each, to name it."""
    properties = message.properties
    if not isinstance(properties, Mapping):
        raise MessageRejectedError(f"properties is {type(properties).__name__}: want a mapping of texts")
    if not isinstance(message.keys, Collection):  # an iterator would have no keys left when they are sent
        raise MessageRejectedError(f"keys is {type(message.keys).__name__}: want text, or several in a list")
    try:
        text = "".join(message_texts(message))
        text_bytes = len(text) if text.isascii() else len(text.encode())
    except TypeError:
        _check_each_text(message)
        raise
    except UnicodeEncodeError as error:
        raise MessageRejectedError(
            f"tags, keys, sharding_key or properties hold text that is no Unicode: {error}"
        ) from error
    if (
        "\x01" in text
        or "\x02" in text
        or "||" in text  # forbidden in tags only
        or "" in properties
        or "" in properties.values()
        or not RESERVED_PROPERTIES.isdisjoint(properties)
    ):
        _check_each_text(message)
    if text_bytes + 2 * len(properties) > MAX_USER_PROPERTIES_BYTES:
        raise MessageRejectedError(
            f"tags, keys, sharding_key and properties have {text_bytes} bytes together: "
            f"at most {MAX_USER_PROPERTIES_BYTES} are allowed"
        )


def _check_words(message: Message) -> None:
    """Refuse keys of a list that would be read as two, and tags that no subscription can name.

    Keys given as one text stay as they are: so they come in received messages.
    """
    keys, tags = message.keys, message.tags
    if keys and not isinstance(keys, str):
        for key in keys:
            if KEY_SEPARATOR in key:
                raise MessageRejectedError(
                    f"key {key!r} has a blank: RocketMQ would read several keys; replace the blank, or give "
                    "keys=text to set several keys"
                )
    if tags and tags != tags.strip(_TRIMMED):
        raise MessageRejectedError(
            f"tags {tags!r} begins or ends with a blank: no subscription can name it; remove the blank"
        )


def _check_each_text(message: Message) -> None:
    if message.tags is not None:
        _check_text("tags", message.tags)
        if "||" in message.tags:
            raise MessageRejectedError(
                f"tags {message.tags!r}: a message has one tag; '||' joins tags in filters only"
            )
    for key in [message.keys] if isinstance(message.keys, str) else message.keys:
        _check_text("keys", key)
    if message.sharding_key is not None:
        _check_text("sharding_key", message.sharding_key)
    for name, value in message.properties.items():
        _check_property(name, value)


def _check_text(what: str, text: object) -> None:
    if not isinstance(text, str):
        raise MessageRejectedError(f"{what} is {type(text).__name__}: want text")
    if any(separator in text for separator in _SEPARATORS):
        raise MessageRejectedError(
            f"{what} {text!r} has \\x01 or \\x02: RocketMQ separates properties with them"
        )


def _check_property(name: str, value: str) -> None:
    _check_text("property name", name)
    _check_text(f"property {name!r}", value)
    if not name:
        raise MessageRejectedError(f"a property with value {value!r} has an empty name")
    if not value:
        raise MessageRejectedError(
            f"property {name!r} is empty: RocketMQ loses empty values when read; leave it out"
        )
    if name in RESERVED_PROPERTIES:
        raise MessageRejectedError(f"property {name!r} is reserved by RocketMQ: choose another name")


def _check_delay(message: Message) -> None:
    ways = {
        "delay_level": message.delay_level or None,
        "delay": message.delay,
        "deliver_at_ms": message.deliver_at_ms,
    }
    given = {name: value for name, value in ways.items() if value is not None}
    if len(given) > 1:
        raise MessageRejectedError(f"{' and '.join(given)} exclude one another: give one")
    level = message.delay_level
    delay = message.delay
    time = message.deliver_at_ms
    if not (_is_int(level) and 0 <= level <= MAX_DELAY_LEVEL):
        raise MessageRejectedError(f"delay_level={level!r}: want 1 to {MAX_DELAY_LEVEL}, or 0 for none")
    if delay is not None and not (isinstance(delay, int | float) and 0 < delay < _ENDLESS_SECONDS):
        raise MessageRejectedError(f"delay={delay!r}: want more than 0 seconds, as a number below 10^15")
    if time is not None and not (_is_int(time) and 0 < time < 2**63):
        raise MessageRejectedError(f"deliver_at_ms={time!r}: want milliseconds since 1970, as a whole number")


def _check_priority(message: Message, priority: int) -> None:
    """Brokers drop the priority of a message that is of another type already (SendMessageProcessor)."""
    if not (_is_int(priority) and 0 <= priority < 2**31):
        raise MessageRejectedError(f"priority={priority!r}: want 0 or more, 31 bits")
    if message.sharding_key or message.is_delayed:
        other = "a sharding_key" if message.sharding_key else "a delay"
        raise MessageRejectedError(
            f"priority={priority} and {other}: brokers would drop the priority; give one"
        )
