"""The transaction producer of the moved API, on a fake cluster."""

import queue
import threading
from typing import Any

import pytest

from rmqtools.compat.client import SendStatus, TransactionMQProducer, TransactionStatus
from rmqtools.compat.exceptions import ProducerSendSyncFailed, ProducerStartFailed
from tests.support.cluster_scene import wait_until
from tests.unit.compat.conftest import message_of

COMMIT, ROLLBACK, UNKNOWN = TransactionStatus


def answering(answer: object):
    def answer_or_raise(*_: object) -> object:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return answer_or_raise


@pytest.fixture
def make_producer(open_client):
    def make(checker=None) -> TransactionMQProducer:
        producer = open_client(TransactionMQProducer("shop", checker or answering(UNKNOWN)))
        producer.start()
        return producer

    return make


@pytest.mark.parametrize(
    ("answer", "visible", "open_"),
    [
        pytest.param(COMMIT, 1, 0, id="commit"),
        pytest.param(0, 1, 0, id="the number of commit"),
        pytest.param(ROLLBACK, 0, 0, id="rollback"),
        pytest.param(UNKNOWN, 0, 1, id="unknown"),
        pytest.param(None, 0, 1, id="none"),
        pytest.param(ValueError("told to fail"), 0, 1, id="error"),
        pytest.param(SystemExit(1), 0, 1, id="exit"),
    ],
)
def test_the_local_transaction_decides(make_producer, cluster, answer, visible, open_) -> None:
    result = make_producer().send_message_in_transaction(message_of(), answering(answer))

    assert result.status == SendStatus.OK
    assert len(cluster.messages("orders")) == visible
    assert len(cluster.half_messages()) == open_


def test_the_local_transaction_runs_here_with_the_message_and_any_object(make_producer) -> None:
    given: list[object] = []

    def execute(message, arg) -> TransactionStatus:
        given.extend((message.id, message.body, arg, threading.current_thread()))
        return COMMIT

    arg = object()
    result = make_producer().send_message_in_transaction(message_of(), execute, arg)

    assert given == [result.msg_id, b"body", arg, threading.current_thread()]


def test_a_check_that_fails_is_asked_again_and_then_decides(make_producer, cluster) -> None:
    answers = [ValueError("told to fail"), None, COMMIT]
    checked: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def check(message) -> object:
        checked.put((message.id, message.body))
        return answering(answers.pop(0))()

    producer = make_producer(check)
    sent = producer.send_message_in_transaction(message_of(), answering(UNKNOWN))

    def is_asked() -> bool:  # a check that comes while another one runs is dropped
        cluster.check_transactions("shop")
        return not checked.empty()

    for _ in range(3):
        wait_until(is_asked)
        assert checked.get() == (sent.msg_id, b"body")
    producer.shutdown()  # waits for the check that runs

    assert [message.msg_id for message in cluster.messages("orders")] == [sent.msg_id]


def test_a_message_with_a_delay_is_refused(make_producer) -> None:
    message = message_of()
    message.set_delay_time_level(1)

    with pytest.raises(ProducerSendSyncFailed, match="cannot have a delay"):
        make_producer().send_message_in_transaction(message, answering(COMMIT))


def test_the_default_group_is_refused(open_client) -> None:
    with pytest.raises(ProducerStartFailed, match="DEFAULT_PRODUCER"):
        open_client(TransactionMQProducer("DEFAULT_PRODUCER", answering(COMMIT))).start()


def test_the_constructor_has_the_native_order_of_arguments() -> None:
    producer = TransactionMQProducer("shop", answering(COMMIT), None, 1500, 0, 10)

    assert producer._timeout == 1.5
    assert producer._settings["max_message_bytes"] == 10
