"""Decides whether a request is tried again, the outcome of a message, and the time of an attempt.

Source of the rules: DefaultMQProducerImpl.sendDefaultImpl, DefaultMQProducer (Java client).
"""

from dataclasses import dataclass

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
