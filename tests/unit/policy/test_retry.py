import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import (
    BrokerError,
    ConnectionLostError,
    MessageRejectedError,
    ProtocolError,
    RemotingConnectError,
    RemotingError,
    RemotingTimeoutError,
    TopicNotFoundError,
)
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import Outcome, SendStatus
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


QUEUE = MessageQueue("T", "a", 0)
NOT_OK = [status for status in SendStatus if status is not SendStatus.SEND_OK]

AGAIN = [
    RemotingConnectError("x"),
    RemotingTimeoutError("x"),
    ConnectionLostError("x"),
    RemotingError("x"),
    refused(2),
]


def test_the_first_attempt_avoids_nobody():
    assert SendLoop(3).last_broker_name is None


@pytest.mark.parametrize("error", AGAIN, ids=repr)
def test_after_an_error_that_may_pass_another_attempt_avoids_that_broker(error):
    loop = SendLoop(3)
    loop.failed(QUEUE, error)

    assert (loop.attempts_left, loop.last_broker_name) == (2, "a")


@pytest.mark.parametrize("error", [refused(13), refused(10), ProtocolError("x")], ids=repr)
def test_after_a_refusal_that_stays_there_is_no_other_attempt(error):
    loop = SendLoop(3)
    loop.failed(QUEUE, error)

    assert loop.attempts_left == 0


@pytest.mark.parametrize("go_on", [True, False])
def test_a_stored_message_is_not_sent_again(go_on):
    loop = SendLoop(3, go_on)
    loop.stored(QUEUE, SendStatus.SEND_OK)

    assert loop.attempts_left == 0


@pytest.mark.parametrize("status", NOT_OK)
def test_stored_without_flush_or_copy_is_enough_unless_asked_otherwise(status):
    loop = SendLoop(3)
    loop.stored(QUEUE, status)

    assert loop.attempts_left == 0


@pytest.mark.parametrize("status", NOT_OK)
def test_stored_without_flush_or_copy_goes_on_to_another_broker_where_asked(status):
    loop = SendLoop(3, retry_another_broker_when_not_store_ok=True)
    loop.stored(QUEUE, status)

    assert (loop.attempts_left, loop.last_broker_name) == (2, "a")


@given(st.integers(1, 5), st.booleans(), st.lists(st.sampled_from([*AGAIN, *NOT_OK]), min_size=5, max_size=5))
def test_there_are_never_more_attempts_than_given(attempts, go_on, answers):
    loop, made = SendLoop(attempts, go_on), 0
    while loop.attempts_left:
        answer = answers[made]
        made += 1
        take = loop.stored if isinstance(answer, SendStatus) else loop.failed
        take(QUEUE, answer)

    assert 1 <= made <= attempts
