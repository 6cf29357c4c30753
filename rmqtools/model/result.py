"""What a send or a pull came to."""

from dataclasses import dataclass
from enum import Enum

from rmqtools.model.queue import MessageQueue


class SendStatus(Enum):
    """How far a stored message got before the broker answered (SendStatus of the Java client)."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


class Outcome(Enum):
    """What is known of a message after an attempt to send it."""

    STORED = "stored"
    NOT_SENT = "not sent"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SendAttempt:
    """One try of a send: where, how long in seconds, what came of it."""

    queue: MessageQueue
    broker_addr: str
    seconds: float
    outcome: Outcome
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SendResult:
    """A message the broker stored.

    ``msg_id`` is the unique key made by the client; ``offset_msg_id`` names the place in the commit log.
    ``attempts`` holds every try, the successful one last: an earlier one whose outcome is unknown may have
    stored the message too. ``recall_handle``: what takes a timer message back (``Producer.recall``).
    ``is_trace_on``: whether the broker lets messages be traced.
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
        """Whether another attempt has stored the message as well, or may have."""
        stored = (Outcome.STORED, Outcome.UNKNOWN)
        return sum(attempt.outcome in stored for attempt in self.attempts) > 1


@dataclass(frozen=True, slots=True)
class BrokerHealth:
    """What a producer knows of a broker while latency fault avoidance is on. Times are seconds."""

    latency: float
    is_available: bool
    is_reachable: bool
    available_in: float


class PullStatus(Enum):
    """What a pull found (PullStatus of the Java client)."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


@dataclass(frozen=True, slots=True)
class PullResult:
    """One answer to a pull. ``body`` is the stored messages back to back, not decoded."""

    status: PullStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    suggest_which_broker_id: int = 0
    body: bytes = b""
    remark: str = ""
