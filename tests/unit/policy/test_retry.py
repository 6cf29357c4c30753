import pytest

from rmqtools.errors import (
    BrokerError,
    ConnectionLostError,
    MessageRejectedError,
    ProtocolError,
    RemotingConnectError,
    RemotingTimeoutError,
    TopicNotFoundError,
)
from rmqtools.model.result import Outcome
from rmqtools.policy.retry import SendLoop, attempt_timeout, may_retry, may_send_again, outcome_of


def refused(code: int) -> BrokerError:
    return BrokerError(code, "no", "h:1")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (RemotingConnectError("x"), Outcome.NOT_SENT),
        (RemotingTimeoutError("x"), Outcome.UNKNOWN),
        (ConnectionLostError("x"), Outcome.UNKNOWN),
        (ProtocolError("x"), Outcome.UNKNOWN),
        (refused(1), Outcome.UNKNOWN),
        (refused(2), Outcome.REFUSED),
        (refused(16), Outcome.REFUSED),
    ],
)
def test_nobody_answered_is_told_from_answered_no_and_from_never_sent(error, outcome):
    assert outcome_of(error) is outcome


@pytest.mark.parametrize("code", [1, 2, 14, 16, 17, 204, 205, 1500])
def test_a_send_goes_on_after_the_codes_the_java_client_retries(code):
    assert may_send_again(refused(code))


@pytest.mark.parametrize("error", [refused(13), refused(29), ProtocolError("x"), MessageRejectedError("x")])
def test_a_send_ends_after_anything_else_the_peer_said(error):
    assert not may_send_again(error)


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (RemotingTimeoutError("x"), True),
        (refused(2), True),
        (refused(17), False),
        (TopicNotFoundError("x"), False),
        (ValueError("x"), False),
    ],
)
def test_look_ups_try_again_when_nobody_answered_or_the_broker_was_busy(error, again):
    assert may_retry(error) is again


def test_an_attempt_takes_half_of_what_is_left_and_the_last_one_all():
    assert [attempt_timeout(3.0, 3), attempt_timeout(1.5, 2), attempt_timeout(0.75, 1)] == [1.5, 0.75, 0.75]


def test_the_first_attempt_avoids_nobody():
    assert SendLoop(3).last_broker_name is None
