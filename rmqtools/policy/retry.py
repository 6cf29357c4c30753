"""Whether to try again.

Source of the rules: DefaultMQProducerImpl.sendDefaultImpl, DefaultMQProducer (Java client).
"""

from rmqtools.errors import (
    BrokerError,
    ClientStateError,
    ConfigError,
    RemotingConnectError,
    RemotingError,
    RocketMQError,
)
from rmqtools.model.codes import ResponseCode
from rmqtools.model.result import Outcome

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
    """Whether the same look-up may succeed a little later: nobody answered, or the broker was too busy to."""
    if isinstance(error, BrokerError):
        return error.code == ResponseCode.SYSTEM_BUSY
    return isinstance(error, RocketMQError) and error.retriable


def may_send_again(error: RocketMQError) -> bool:
    """Whether a send that ended so goes on with another queue."""
    if isinstance(error, BrokerError):
        return error.code in RETRY_RESPONSE_CODES
    return isinstance(error, RemotingError)


def outcome_of(error: RocketMQError) -> Outcome:
    """What is known of the message when its send ended so.

    An internal error (code 1) may have struck after the message was stored, so it counts as unknown.
    """
    if isinstance(error, RemotingConnectError | ClientStateError | ConfigError):
        return Outcome.NOT_SENT
    if isinstance(error, BrokerError) and error.code != ResponseCode.SYSTEM_ERROR:
        return Outcome.REFUSED
    return Outcome.UNKNOWN


def attempt_timeout(remaining: float, attempts_left: int) -> float:
    """The share of the remaining seconds one attempt may take: half, the last one all.

    Ours: the Java client lets its first attempt use up everything, so a paused broker leaves nothing to
    retry with (apache/rocketmq issues 1921, 4720, 7295).
    """
    return remaining if attempts_left <= 1 else remaining / 2
