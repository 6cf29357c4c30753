"""The errors of the package, one tree.

    RocketMQError
    ├── ConfigError              a setting that cannot be used             also ValueError
    ├── ClientStateError         not started, closed, of another loop or process   also RuntimeError
    ├── MessageRejectedError     refused before anything was sent           also ValueError
    ├── ProtocolError            the peer sent what cannot be
    │   └── CorruptBodyError         a stored message's body cannot be read (``offset``, ``why``, ``raw``)
    │       └── BodyTooLargeError    it is larger than ``max_decompressed_bytes`` (``max_bytes``)
    ├── RemotingError            nobody answered
    │   ├── RemotingConnectError     no connection: nothing was sent          also ConnectionError
    │   ├── RemotingTimeoutError     no answer in time: outcome unknown         also TimeoutError
    │   └── ConnectionLostError      closed before the answer: outcome unknown  also ConnectionError
    ├── BrokerError              the peer refused (``code``, ``remark``)
    │   └── UnsupportedError         the server does not have the ``feature``
    ├── TopicNotFoundError       no name server has a route of the topic
    ├── PermissionDeniedError    the route says the topic may not be read, or written
    ├── DataLossError            offsets asked for do not exist, or no longer
    ├── ReceiptError             a received message can no longer be settled     also ValueError
    ├── AcknowledgeError         some messages were not acknowledged (``failed`` says which)
    ├── ExactAppendError         an exact appender cannot be sure of its queue, and has stopped
    └── SendError                a message was not stored (``attempts`` says why)
        ├── BackPressureError    too much is in flight already: nothing was sent
        ├── UnknownOutcomeError  at least one attempt may have stored it
        └── SendManyError        some of many messages (``results`` says which)

``retriable`` says whether the same call may succeed later although nothing is changed. In the package
only ``rmqtools.policy.retry`` reads it. ``docs/troubleshooting.md`` explains each class and text.
"""

from collections.abc import Sequence

from rmqtools.model.codes import ResponseCode
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue, queue_name
from rmqtools.model.result import SendAttempt, SendResult


class RocketMQError(Exception):
    """Base class of the package's own errors.

    Arguments of a wrong type or value may also raise ``TypeError`` or ``ValueError``, a missing extra
    ``ImportError``.
    """

    retriable: bool = False


class ConfigError(RocketMQError, ValueError):
    """A setting that cannot be used. The text names setting, value and remedy."""


class ClientStateError(RocketMQError, RuntimeError):
    """The client cannot be used now: not started, closed, or of another event loop or process (fork)."""


class MessageRejectedError(RocketMQError, ValueError):
    """A message that cannot be sent. Nothing was sent."""


class ProtocolError(RocketMQError):
    """The peer sent bytes that are not RocketMQ's protocol. The connection is closed."""


class CorruptBodyError(ProtocolError):
    """The body of a stored message cannot be read; all else of the message can.

    Attributes:
        queue: which queue the message is in.
        offset: its queue offset.
        why: the error of the body.
        raw: the body's bytes as they are stored.
    """

    def __init__(self, queue: MessageQueue, offset: int, why: str, raw: bytes) -> None:
        self.queue = queue
        self.offset = offset
        self.why = why
        self.raw = raw
        super().__init__(
            f"body of the message at queue offset {offset} of {queue} cannot be decoded: {why}; what is "
            f"before and behind it can be read, its {len(raw)} stored bytes are in `raw`, and a range is "
            "read past it with corrupt_body='raw' or 'null'"
        )

    def __reduce__(self) -> tuple[type["CorruptBodyError"], tuple[MessageQueue, int, str, bytes]]:
        return type(self), (self.queue, self.offset, self.why, self.raw)


class BodyTooLargeError(CorruptBodyError):
    """The body of a stored message is larger than ``max_decompressed_bytes`` when it is decompressed.

    It is an error of its own because a higher setting can read it: ``corrupt_body='null'`` does not
    hide it.

    Attributes:
        max_bytes: the setting ``max_decompressed_bytes`` that was in force.
    """

    def __init__(self, queue: MessageQueue, offset: int, why: str, raw: bytes, max_bytes: int) -> None:
        super().__init__(queue, offset, why, raw)
        self.max_bytes = max_bytes
        self.args = (
            f"body of the message at queue offset {offset} of {queue} is larger than "
            f"max_decompressed_bytes={max_bytes} when decompressed: {why}; raise max_decompressed_bytes if "
            f"its sender can be trusted; its {len(raw)} stored bytes are in `raw`, and a range is read past "
            "it with corrupt_body='raw'",
        )

    def __reduce__(self) -> tuple[type["BodyTooLargeError"], tuple[MessageQueue, int, str, bytes, int]]:  # type: ignore[override]
        return type(self), (self.queue, self.offset, self.why, self.raw, self.max_bytes)


class RemotingError(RocketMQError):
    """No answer came. A request that changes something may or may not have done so."""

    retriable = True


class RemotingConnectError(RemotingError, ConnectionError):
    """No connection could be made, so nothing was sent."""


class RemotingTimeoutError(RemotingError, TimeoutError):
    """The request was sent, but no answer came in time: its outcome is unknown."""


class ConnectionLostError(RemotingError, ConnectionError):
    """The connection broke before the answer came: the outcome of the request is unknown."""


_ACCESS_HINTS = {  # by words of the remark: all refusals of access control have one code (ACL 2.0 of 5.x)
    "username cannot be null": "the server needs signed requests: set access_key and secret_key",
    "check signature failed": "the secret_key does not belong to this access_key: correct it",
    "is not found": "the server knows no user of this access_key: correct it, or have the user created",
    "has no permission": "have an administrator allow it (mqadmin createAcl), or use another access_key",
}


_MOVED_HINT = (
    "a queue of this static topic has moved to another broker, and a proxy does not find it there: give the "
    "name servers themselves as name_server"
)


def _hint(code: int, remark: str) -> str:
    """Return the remedy of some refusals; "": none is known. A proxy has SYSTEM_ERROR for access control."""
    if code == ResponseCode.NOT_LEADER_FOR_QUEUE:
        return _MOVED_HINT
    if code not in (ResponseCode.NO_PERMISSION, ResponseCode.SYSTEM_ERROR):
        return ""
    known = (hint for words, hint in _ACCESS_HINTS.items() if words in remark)
    return next(known, "") if code == ResponseCode.NO_PERMISSION or "not found" not in remark else ""


class BrokerError(RocketMQError):
    """A name server or broker refused the request.

    Attributes:
        code: the response code; a plain int if this version has no name for it.
        remark: the peer's own text.
        addr: the server that answered, ``host:port``.
        hint: its meaning and remedy, if known; else "".
    """

    def __init__(self, code: int, remark: str | None, addr: str, hint: str = "") -> None:
        self.code = ResponseCode.of(code)
        self.remark = remark or ""
        self.addr = addr
        self.hint = hint or _hint(self.code, self.remark)
        super().__init__(code, remark, addr, hint)

    def __str__(self) -> str:
        answer = f"{self.addr} answered {ResponseCode.describe(self.code)}: {self.remark or 'no remark'}"
        return f"{answer}; {self.hint}" if self.hint else answer


class UnsupportedError(BrokerError):
    """The server does not have a feature: it says so, or it is a proxy or too old, and nothing was sent.

    Attributes:
        feature: the missing feature.
        addr: the server, ``host:port``.
    """

    def __init__(self, text: str, feature: str, addr: str, remark: str | None = None) -> None:
        super().__init__(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark, addr)
        self.feature = feature
        self.args = (text, feature, addr, remark)

    def __str__(self) -> str:
        return str(self.args[0])


class TopicNotFoundError(RocketMQError):
    """No name server has a route of the topic."""


class PermissionDeniedError(RocketMQError):
    """The route of the topic forbids the operation. Clients must check this, because brokers do not."""


class DataLossError(RocketMQError):
    """Queue offsets that were asked for cannot be read: expired, deleted or never written."""


class ReceiptError(RocketMQError, ValueError):
    """The receipt of a message has ended, or was replaced, or is none. Nothing was sent.

    The message comes again, unless an acknowledgement with a newer receipt counts.
    """


class AcknowledgeError(RocketMQError):
    """Some messages of one call were not acknowledged; all others were.

    Attributes:
        failed: each message that was not acknowledged, with its error. After a :class:`RemotingError` it may
            have been acknowledged: acknowledging it again does no harm.
    """

    def __init__(self, failed: Sequence[tuple[MessageExt, RocketMQError]], total: int) -> None:
        self.failed = tuple(failed)
        self.total = total
        super().__init__(
            f"{len(self.failed)} of {total} messages were not acknowledged; the first: {self.failed[0][1]}"
        )

    def __reduce__(self) -> tuple[type["AcknowledgeError"], tuple[object, int]]:
        return type(self), (self.failed, self.total)


class ExactAppendError(RocketMQError):
    """An exact appender cannot be sure of its queue: another writer, a lost end, a position not known.

    It has stopped, so that no message is stored twice. The text names the queue and the remedy.
    """


class SendError(RocketMQError):
    """A message could not be sent and is certainly not stored.

    Attributes:
        attempts: every attempt in order: queue, broker, seconds, outcome, error.
    """

    def __init__(self, text: str, attempts: Sequence[SendAttempt] = ()) -> None:
        self.attempts = tuple(attempts)
        super().__init__(text, self.attempts)

    def __str__(self) -> str:
        tries = "; ".join(
            f"{queue_name(attempt.queue)} at {attempt.broker_addr} "
            f"{attempt.outcome.value} after {attempt.seconds:.3f} s: {attempt.error}"
            for attempt in self.attempts
        )
        return f"{self.args[0]} ({tries})" if tries else str(self.args[0])


class BackPressureError(SendError):
    """A message would exceed the bound of what may be in flight. Nothing was sent: send more slowly."""

    retriable = True


class UnknownOutcomeError(SendError):
    """A message may or may not be stored: an attempt was sent, but no answer came."""


class SendManyError(SendError):
    """Some messages of a ``send_many`` were not stored, or may not be.

    Attributes:
        results: for every message, in the order given, its :class:`SendResult` or its :class:`SendError`.
    """

    def __init__(self, text: str, results: Sequence[SendResult | SendError]) -> None:
        super().__init__(text)
        self.results = tuple(results)
        self.args = (text, self.results)

    def __str__(self) -> str:
        return str(self.args[0])
