"""A message whose body cannot be read: everything else of it is as usual.

Java's client hands out such a message with the bytes as they are stored and no log, or drops it with all
that follows it in the answer (MessageDecoder.decode, decodesBatch). The stored checksum is not compared, as
Java's client does not by default (``checkCRC``).
"""

from typing import Any, NamedTuple, NoReturn

from rmqtools.errors import BodyTooLargeError, CorruptBodyError, ProtocolError
from rmqtools.model.message import SLOTS, MessageExt, shown_message
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.messages.compression import OversizeError

_set_body = SLOTS["body"]
_get_body = MessageExt.__dict__["body"].__get__


class _CorruptBody(NamedTuple):
    """Body of a corrupt message."""

    raw: bytes
    why: str
    max_bytes: int | None  # what it is larger than

    def error(self, queue: MessageQueue, offset: int) -> CorruptBodyError:
        """Return the details for the error message."""
        if self.max_bytes is None:
            return CorruptBodyError(queue, offset, self.why, self.raw)
        return BodyTooLargeError(queue, offset, self.why, self.raw, self.max_bytes)


class CorruptMessage(MessageExt):
    """A message whose ``body`` raises :class:`CorruptBodyError`; nothing else of it does."""

    __slots__ = ()

    @property
    def body(self) -> NoReturn:
        """Raises the error that describes the corruption."""
        raise self.body_error

    @property
    def body_error(self) -> CorruptBodyError:
        """Error of the body, with the bytes as they are stored."""
        return self.error_in(MessageQueue(self.topic, self.broker_name, self.queue_id))

    def error_in(self, queue: MessageQueue) -> CorruptBodyError:
        """Return the same for a reader who knows the queue by another name."""
        return _kept(self).error(queue, self.queue_offset)

    def with_topic(self, topic: str) -> MessageExt:
        """See :meth:`MessageExt.with_topic`."""
        return self.with_values(topic=topic)

    def with_values(self, **values: Any) -> MessageExt:
        """See :meth:`MessageExt.with_values`; with another ``body`` the message is corrupt no more."""
        changed = raw_message(self).with_values(**values)
        return changed if "body" in values else _corrupt(changed, _kept(self).why, _kept(self).max_bytes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CorruptMessage):
            return NotImplemented
        return _kept(self) == _kept(other) and raw_message(self) == raw_message(other)

    __hash__ = None  # type: ignore[assignment] # as of any message: its properties are a dict

    def __repr__(self) -> str:
        kept = _kept(self)
        return shown_message(self, f"<{len(kept.raw)} bytes that cannot be read: {kept.why}>")

    def __reduce__(self) -> tuple[Any, ...]:
        return _corrupt, (raw_message(self), _kept(self).why, _kept(self).max_bytes)


def corrupt_message(message: MessageExt, why: str | ProtocolError) -> CorruptMessage:
    """Declare the body of a message just made, which holds the bytes as they are stored, unreadable."""
    return _corrupt(message, str(why), why.max_bytes if isinstance(why, OversizeError) else None)


def _corrupt(message: MessageExt, why: str, max_bytes: int | None) -> CorruptMessage:
    _set_body(message, _CorruptBody(message.body, why, max_bytes))
    object.__setattr__(message, "__class__", CorruptMessage)
    return message  # type: ignore[return-value]


def raw_message(message: MessageExt) -> MessageExt:
    """Return the message with its body as stored; ``sys_flag`` has the compressed bit where it was set."""
    if not isinstance(message, CorruptMessage):
        return message
    values = {name: getattr(message, name) for name in SLOTS if name != "body"}
    return MessageExt(body=_kept(message).raw, **values)


def _kept(message: CorruptMessage) -> _CorruptBody:
    kept: _CorruptBody = _get_body(message)
    return kept
