"""Results of sends and pulls."""

from dataclasses import dataclass
from enum import Enum

from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record


class SendStatus(Enum):
    """Result of a send: stored, and flushed and replicated before the answer or not (SendStatus in Java)."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


class Outcome(Enum):
    """The outcome of an attempt to send a message."""

    STORED = "stored"
    NOT_SENT = "not sent"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@record(kw_only=False)
class SendAttempt:
    """One attempt of a send: its queue, its seconds, its outcome."""

    queue: MessageQueue
    broker_addr: str
    seconds: float
    outcome: Outcome
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SendResult:
    """A stored message.

    ``msg_id`` is the unique key made by the client; ``offset_msg_id`` names the place in the commit log.
    ``attempts`` has every attempt, the successful one last; an earlier one with unknown outcome may have
    stored the message too. ``recall_handle`` cancels a timer message (``Producer.recall``).
    ``is_trace_on``: whether the broker allows tracing.
    """

    status: SendStatus
    queue: MessageQueue
    queue_offset: int
    msg_id: str
    offset_msg_id: str
    transaction_id: str | None = None
    region_id: str | None = None
    recall_handle: str | None = None
    is_trace_on: bool = True
    attempts: tuple[SendAttempt, ...] = ()

    @property
    def may_be_duplicated(self) -> bool:
        """True if another attempt may have stored the message too."""
        stored = (Outcome.STORED, Outcome.UNKNOWN)
        return sum(attempt.outcome in stored for attempt in self.attempts) > 1


@record(kw_only=False)
class BrokerHealth:
    """The state of a broker in latency fault avoidance. Times are seconds."""

    latency: float
    is_available: bool
    is_reachable: bool
    available_in: float


@record(kw_only=False)
class SendsInFlight:
    """Sends that count for the bound of ``enable_backpressure_for_async_mode``, at one moment.

    Attributes:
        messages: messages in flight.
        body_bytes: bytes of their bodies.
        waiting: sends that wait for room; they are not in flight yet.
    """

    messages: int = 0
    body_bytes: int = 0
    waiting: int = 0


class PullStatus(Enum):
    """The result of a pull (PullStatus of the Java client)."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


@dataclass(frozen=True, slots=True)
class PullResult:
    """One answer to a pull. ``body`` is the stored messages back to back, not decoded.

    ``offset_delta``: a static topic's queue offsets are those of its messages, which are the broker's own,
    plus this; all other offsets in here are the static topic's.
    """

    status: PullStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    suggest_which_broker_id: int = 0
    body: bytes = b""
    remark: str = ""
    offset_delta: int = 0
