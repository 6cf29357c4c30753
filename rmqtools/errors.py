"""The errors of the package, one tree.

    RocketMQError
    ├── ConfigError              a setting that cannot be used             also ValueError
    ├── ClientStateError         not started, closed, or inherited by fork   also RuntimeError
    ├── MessageRejectedError     refused before anything was sent           also ValueError
    ├── ProtocolError            the peer sent what cannot be
    ├── RemotingError            nobody answered
    │   ├── RemotingConnectError     no connection: nothing was sent          also ConnectionError
    │   ├── RemotingTimeoutError     no answer in time: outcome unknown         also TimeoutError
    │   └── ConnectionLostError      closed before the answer: outcome unknown  also ConnectionError
    ├── BrokerError              the peer answered no (``code``, ``remark``)
    ├── TopicNotFoundError       no name server has a route of the topic
    ├── PermissionDeniedError    the route says the topic may not be read, or written
    ├── DataLossError            offsets asked for are not, or no longer, there
    └── SendError                a message could not be placed (``attempts``): it was not stored
        ├── UnknownOutcomeError  at least one attempt may have stored it
        └── SendManyError        some of many messages (``results`` says which)

``retriable`` says whether the same call may succeed later without anybody changing anything;
``rmqtools.policy.retry`` is its only reader in the package.
"""

from collections.abc import Sequence

from rmqtools.model.codes import ResponseCode
from rmqtools.model.result import SendAttempt, SendResult


class RocketMQError(Exception):
    """The root: ``except RocketMQError`` catches everything the package raises on purpose."""

    retriable: bool = False


class ConfigError(RocketMQError, ValueError):
    """A setting that cannot be used. The text names setting, value and remedy."""


class ClientStateError(RocketMQError, RuntimeError):
    """The client cannot be used now: not started, closed, or inherited from a parent process by fork."""


class MessageRejectedError(RocketMQError, ValueError):
    """A message that cannot be sent; nothing has left this process."""


class ProtocolError(RocketMQError):
    """Bytes that no RocketMQ peer sends. The connection they came from is dropped."""


class RemotingError(RocketMQError):
    """Nobody answered. A request that changes something may or may not have done so."""

    retriable = True


class RemotingConnectError(RemotingError, ConnectionError):
    """No connection could be made, so nothing was sent."""


class RemotingTimeoutError(RemotingError, TimeoutError):
    """The request left, no answer came in time: what became of it is unknown."""


class ConnectionLostError(RemotingError, ConnectionError):
    """The connection broke while the answer was awaited: what became of the request is unknown."""


class BrokerError(RocketMQError):
    """A name server or broker answered no.

    Attributes:
        code: the response code; a plain int where this version has no name for it.
        remark: the peer's own text.
        addr: who answered, ``host:port``.
    """

    def __init__(self, code: int, remark: str | None, addr: str) -> None:
        self.code = ResponseCode.of(code)
        self.remark = remark or ""
        self.addr = addr
        super().__init__(code, remark, addr)

    def __str__(self) -> str:
        return f"{self.addr} answered {ResponseCode.describe(self.code)}: {self.remark or 'no remark'}"


class TopicNotFoundError(RocketMQError):
    """No name server has a route of the topic."""


class PermissionDeniedError(RocketMQError):
    """The route of the topic forbids what was asked; clients must honour it, brokers do not."""


class DataLossError(RocketMQError):
    """Queue offsets that were asked for cannot be read: expired, deleted or never written."""


class SendError(RocketMQError):
    """A message could not be placed, and is known not to be stored.

    Attributes:
        attempts: every try in order: queue, broker, seconds, outcome, error.
    """

    def __init__(self, text: str, attempts: Sequence[SendAttempt] = ()) -> None:
        self.attempts = tuple(attempts)
        super().__init__(text, self.attempts)

    def __str__(self) -> str:
        tries = "; ".join(
            f"{attempt.queue.broker_name}[{attempt.queue.queue_id}] at {attempt.broker_addr} "
            f"{attempt.outcome.value} after {attempt.seconds:.3f} s: {attempt.error}"
            for attempt in self.attempts
        )
        return f"{self.args[0]} ({tries})" if tries else str(self.args[0])


class UnknownOutcomeError(SendError):
    """A message may or may not be stored: an attempt was cut off after its bytes had left."""


class SendManyError(SendError):
    """Some messages of a ``send_many`` could not be placed.

    Attributes:
        results: for every message in the order given, its :class:`SendResult` or its own :class:`SendError`.
    """

    def __init__(self, text: str, results: Sequence[SendResult | SendError]) -> None:
        super().__init__(text)
        self.results = tuple(results)
        self.args = (text, self.results)

    def __str__(self) -> str:
        return str(self.args[0])
