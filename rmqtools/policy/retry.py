"""Decides whether and how soon to try again, the outcome of a message, and the time of an attempt.

Source of the rules: DefaultMQProducerImpl.sendDefaultImpl, DefaultMQProducer (Java client).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from rmqtools.errors import (
    BrokerError,
    ClientStateError,
    ConfigError,
    RemotingConnectError,
    RemotingError,
    RocketMQError,
)
from rmqtools.model.codes import ResponseCode
from rmqtools.model.queue import MessageQueue
from rmqtools.model.record import record
from rmqtools.model.result import Outcome, SendStatus

RETRY_RESPONSE_CODES = frozenset(
    {
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,
    }
)

FIRST_CONNECT_PAUSE = 0.05  # seconds, after the second failure in a row: at most 20 tries a second
FIRST_PULL_PAUSE = 0.020  # seconds; upstream PULL_TIME_DELAY_MILLS_WHEN_BROKER_FLOW_CONTROL
LONGEST_CONNECT_PAUSE = 1.0  # seconds: a broker that is back is noticed this late


def may_retry(error: BaseException) -> bool:
    """Return whether the same look-up may succeed a little later: no answer came, or a busy broker's."""
    if isinstance(error, BrokerError):
        return error.code == ResponseCode.SYSTEM_BUSY
    return isinstance(error, RocketMQError) and error.retriable


def may_send_again(error: RocketMQError) -> bool:
    """Return whether a send continues with another queue after this error."""
    if isinstance(error, BrokerError):
        return error.code in RETRY_RESPONSE_CODES
    return isinstance(error, RemotingError)


def outcome_of(error: RocketMQError) -> Outcome:
    """Return what is known of a message after this error of its send.

    An internal error (code 1) may have happened after the message was stored, so it counts as unknown.
    """
    if isinstance(error, RemotingConnectError | ClientStateError | ConfigError):
        return Outcome.NOT_SENT
    if isinstance(error, BrokerError) and error.code != ResponseCode.SYSTEM_ERROR:
        return Outcome.REFUSED
    return Outcome.UNKNOWN


def attempt_timeout(remaining: float, attempts_left: int) -> float:
    """Return the seconds that one attempt may take: half of the remaining time, the last attempt all of it.

    Ours: the Java client lets its first attempt use all the time, so a paused broker leaves nothing to
    retry with (apache/rocketmq issues 1921, 4720, 7295).
    """
    return remaining if attempts_left <= 1 else remaining / 2


@dataclass(slots=True)
class SendLoop:
    """The state of one send between its attempts.

    Attributes:
        attempts_left: how many attempts may still be made.
        retry_another_broker_when_not_store_ok: continue if a broker stored without flush or replica.
        last_broker_name: the broker that the next attempt avoids.
    """

    attempts_left: int
    retry_another_broker_when_not_store_ok: bool = False
    last_broker_name: str | None = None

    def stored(self, queue: MessageQueue, status: SendStatus) -> None:
        """Note that a broker has stored the message."""
        if status is SendStatus.SEND_OK or not self.retry_another_broker_when_not_store_ok:
            self.attempts_left = 0
        else:
            self._after(queue, goes_on=True)

    def failed(self, queue: MessageQueue, error: RocketMQError) -> None:
        """Note that an attempt failed."""
        self._after(queue, goes_on=may_send_again(error))

    def _after(self, queue: MessageQueue, *, goes_on: bool) -> None:
        self.last_broker_name = queue.broker_name
        self.attempts_left = self.attempts_left - 1 if goes_on else 0


@record(kw_only=False)
class _ConnectFailure:
    """The last failure to connect to an address."""

    reason: str
    pause: float
    until: float


@dataclass(slots=True)
class ConnectBackoff:
    """The addresses that refuse connections. The first failure may be followed by another try at once.

    Each further failure in a row makes the pause longer; a request in between fails with the last reason.
    Ours: the Java client connects again for every request, so a program that sends in a loop makes thousands
    of connections a second to a dead broker.
    """

    _failures: dict[str, _ConnectFailure] = field(default_factory=dict)

    def failed(self, addr: str, reason: str, now: float) -> None:
        """Note that a connection was refused; ``now`` are seconds of a monotonic clock."""
        last = self._failures.get(addr)
        pause = 0.0 if last is None else min(LONGEST_CONNECT_PAUSE, max(FIRST_CONNECT_PAUSE, 2 * last.pause))
        self._failures[addr] = _ConnectFailure(reason, pause, now + pause)

    def connected(self, addr: str) -> None:
        """Forget the failures of an address."""
        self._failures.pop(addr, None)

    def reason(self, addr: str, now: float) -> str | None:
        """Return why the address must not be tried yet; None: it may be."""
        failure = self._failures.get(addr)
        return failure.reason if failure is not None and now < failure.until else None


@dataclass(slots=True)
class PullBackoff:
    """Pauses of one consumer's queues after answers without progress, which may come again at once.

    The first such answer in a row has no pause. Each further one doubles the pause, with jitter; an answer
    with progress ends the row.
    Ours: the Java client pulls again at once, or after 20 ms, without a limit.
    """

    longest: float
    jitter: Callable[[], float]
    """Returns a number from 0 to 1."""
    _rows: dict[Hashable, tuple[int, float]] = field(default_factory=dict)  # count, end of pause

    def note(self, queue: Hashable, now: float, *, paused: bool = False) -> float:
        """Note an answer without progress; return the pause. ``paused``: the first one has a pause, too."""
        count = self._rows.get(queue, (0, 0.0))[0] + 1
        steps = count if paused else count - 1
        pause = 0.0 if steps == 0 else min(self.longest, FIRST_PULL_PAUSE * 2.0 ** min(steps - 1, 32))
        pause *= 1.0 + self.jitter() / 4
        self._rows[queue] = (count, now + pause)
        return pause

    def ended(self, queue: Hashable) -> None:
        """End the row of a queue: an answer brought progress, or the queue is released."""
        if self._rows:
            self._rows.pop(queue, None)

    def delay(self, queue: Hashable, now: float) -> float:
        """Return the seconds that are left of a queue's pause."""
        row = self._rows.get(queue) if self._rows else None
        return 0.0 if row is None else max(0.0, row[1] - now)
