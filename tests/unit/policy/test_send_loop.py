import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import (
    BrokerError,
    ConnectionLostError,
    ProtocolError,
    RemotingConnectError,
    RemotingError,
    RemotingTimeoutError,
)
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendStatus
from rmqtools.policy.send_loop import SendLoop

QUEUE = MessageQueue("T", "a", 0)
NOT_OK = [status for status in SendStatus if status is not SendStatus.SEND_OK]


def refused(code: int) -> BrokerError:
    return BrokerError(code, "no", "h:1")


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
