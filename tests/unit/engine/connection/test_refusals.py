import pytest

from rmqtools.engine.connection.refusals import FETCH, HEARTBEAT, Refusals
from rmqtools.errors import BrokerError, RemotingTimeoutError
from rmqtools.model.codes import ResponseCode

REFUSED = BrokerError(ResponseCode.NO_PERMISSION, "User:bob has no permission", "10.0.0.1:10911")


@pytest.fixture
def told():
    return []


@pytest.fixture
def refusals(told):
    refusals = Refusals()
    refusals.listen(told.append)
    return refusals


def test_a_refusal_is_told_once_until_the_broker_accepts_again(refusals, told):
    for _ in range(3):
        refusals.note(FETCH, "broker-a", REFUSED)
    refusals.accepted(FETCH, "broker-a")
    refusals.note(FETCH, "broker-a", REFUSED)

    assert told == [REFUSED, REFUSED]
    assert [refusals.take() for _ in range(3)] == [REFUSED, REFUSED, None]


def test_heartbeats_that_are_accepted_do_not_hide_that_pulls_are_refused(refusals, told):
    refusals.note(FETCH, "broker-a", REFUSED)
    refusals.accepted(HEARTBEAT, "broker-a")
    refusals.note(FETCH, "broker-a", REFUSED)

    assert told == [REFUSED]


@pytest.mark.parametrize(
    "error", [RemotingTimeoutError("late"), BrokerError(ResponseCode.SYSTEM_BUSY, "", "a:1")], ids=type
)
def test_other_errors_are_no_refusals(refusals, told, error):
    refusals.note(FETCH, "broker-a", error)

    assert (told, refusals.take()) == ([], None)


def test_all_brokers_refuse_only_if_each_does_and_there_is_one(refusals):
    refusals.note(HEARTBEAT, "broker-a", REFUSED)

    assert refusals.of_all(HEARTBEAT, ["broker-a"]) is REFUSED
    assert refusals.of_all(HEARTBEAT, ["broker-a", "broker-b"]) is None
    assert refusals.of_all(HEARTBEAT, []) is None


def test_a_listener_that_fails_does_not_end_the_consumer(caplog):
    refusals = Refusals()
    refusals.listen(lambda error: 1 / 0)
    refusals.note(FETCH, "broker-a", REFUSED)

    assert "error_listener_failed" in caplog.text
