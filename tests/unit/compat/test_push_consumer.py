"""The push consumer of the moved API, on a fake cluster."""

import logging
import queue
import threading
from typing import Any

import pytest

from rmqtools import MessageQueue
from rmqtools.compat.client import ConsumeStatus, MessageModel, PushConsumer, TraceModel
from rmqtools.compat.exceptions import ConsumerException, PushConsumerStartFailed
from rmqtools.testing import RequestCode
from tests.support.cluster_scene import wait_until
from tests.unit.compat.conftest import message_of

SUCCESS, LATER = ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.RECONSUME_LATER


class Heard:
    """A callback that keeps what it got and gives the answers it was told, then success."""

    def __init__(self, *answers: object) -> None:
        self._answers = list(answers)
        self._got: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def __call__(self, message) -> object:
        self._got.put(message)
        answer = self._answers.pop(0) if self._answers else SUCCESS
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def next(self):
        return self._got.get(timeout=10)


def test_a_start_without_subscription_is_refused(consumer) -> None:
    with pytest.raises(PushConsumerStartFailed, match="nothing is subscribed"):
        consumer.start()


def test_a_callback_gets_one_message_at_a_time_and_may_keep_it(consumer, producer, cluster) -> None:
    heard = Heard()
    consumer.subscribe("orders", heard)
    consumer.set_message_batch_max_size(10)
    sent = {producer.send_sync(message_of(b"\x00%d" % number)).msg_id for number in range(5)}
    with consumer as entered:
        kept = [heard.next() for _ in range(5)]

    assert entered is consumer
    assert {message.id for message in kept} == sent
    assert sorted(message.body for message in kept) == [b"\x00%d" % number for number in range(5)]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(LATER, id="later"),
        pytest.param(None, id="none"),
        pytest.param(7, id="another value"),
        pytest.param(ValueError("told to fail"), id="error"),
        pytest.param(SystemExit(3), id="exit"),
    ],
)
@pytest.mark.parametrize("orderly", [False, True])
def test_every_answer_but_success_has_the_message_delivered_again(
    open_client, producer, answer, orderly, fast_retries
) -> None:
    consumer, heard = open_client(PushConsumer("billing", orderly)), Heard(answer)
    consumer.subscribe("orders", heard)
    fast_retries(consumer)
    sent = producer.send_sync(message_of())
    with consumer:
        first, second = heard.next(), heard.next()

    assert first.id == second.id == sent.msg_id
    assert (first.topic, second.topic) == ("orders", "orders")
    assert (first.reconsume_times, second.reconsume_times) == (0, 1)


@pytest.fixture
def fast_retries(monkeypatch):
    """Let orderly consumers try again at once; the fake cluster's delays are 0."""

    def fast(consumer: PushConsumer) -> None:
        monkeypatch.setitem(consumer._settings, "suspend_current_queue_time", 0.01)

    return fast


def test_an_error_of_a_callback_is_logged_with_its_traceback(consumer, producer, caplog) -> None:
    heard = Heard(None)
    consumer.subscribe("orders", heard)
    producer.send_sync(message_of())
    with caplog.at_level(logging.ERROR), consumer:
        heard.next(), heard.next()

    (record,) = [one for one in caplog.records if "consume_callback_failed" in one.message]
    assert "None is not a valid ConsumeStatus" in record.message
    assert record.exc_info is not None


def test_messages_of_a_batch_before_the_failed_one_do_not_come_again(consumer, producer) -> None:
    heard = Heard(SUCCESS, LATER)
    consumer.subscribe("orders", heard)
    consumer.set_message_batch_max_size(10)
    for number in range(3):
        producer.send_orderly_with_sharding_key(message_of(b"%d" % number), "one queue")
    with consumer:
        bodies = [heard.next().body for _ in range(4)]

    assert sorted(bodies) == [b"0", b"1", b"1", b"2"]


def test_only_the_tags_of_the_expression_come(consumer, producer) -> None:
    heard = Heard()
    consumer.subscribe(b"orders", heard, b"new || old")
    for tag in ("other", "old"):
        message = message_of(tag)
        message.set_tags(tag)
        producer.send_sync(message)
    with consumer:
        assert heard.next().tags == b"old"


def test_each_topic_has_its_own_callback_also_after_the_start(consumer, producer, cluster) -> None:
    cluster.create_topic("refunds", queues=1)
    orders, refunds = Heard(), Heard()
    consumer.subscribe("orders", orders)
    with consumer:
        consumer.subscribe("refunds", refunds)
        # a topic that is new to the group is consumed from its end, as it is when its queues are first pulled
        wait_until(lambda: cluster.requests(RequestCode.PULL_MESSAGE, topic="refunds"))
        producer.send_sync(message_of(topic="orders"))
        producer.send_sync(message_of(topic="refunds"))
        assert (orders.next().topic, refunds.next().topic) == ("orders", "refunds")


def test_a_callback_may_shut_its_consumer_down(consumer, producer) -> None:
    done = threading.Event()

    def stop(_message) -> ConsumeStatus:
        consumer.shutdown()
        done.set()
        return SUCCESS

    consumer.subscribe("orders", stop)
    producer.send_sync(message_of())
    consumer.start()

    assert done.wait(10)


def test_a_callback_may_shut_its_consumer_down_while_it_starts(consumer, cluster) -> None:
    cluster.store("orders", b"waits")  # in the queue 0
    cluster.fault(code=RequestCode.QUERY_CONSUMER_OFFSET, topic="orders", queue_id=1, times=None, answer=None)

    def stop(_message) -> ConsumeStatus:
        consumer.shutdown()
        return SUCCESS

    consumer.subscribe("orders", stop)
    consumer.start()  # waits for the queue 1 until then

    wait_until(lambda: not cluster.members("billing"))
    with pytest.raises(PushConsumerStartFailed, match="shut down"):
        consumer.start()


class OneQueue:
    """Gives every member the first queue only."""

    name = "ONE_QUEUE"

    def allocate(self, group, client_id, queues, client_ids):
        return [queue for queue in queues if queue.queue_id == 0]


def test_a_strategy_decides_which_queues_are_consumed(open_client, cluster) -> None:
    consumer, heard = open_client(PushConsumer("billing", allocate_strategy=OneQueue())), Heard()
    consumer.subscribe("orders", heard)
    for queue_id in (1, 0):
        cluster.store("orders", b"%d" % queue_id, queue=MessageQueue("orders", "broker-a", queue_id))
    with consumer:
        assert heard.next().body == b"0"
        assert {queue.queue_id for queue in consumer._engine.queues} == {0}


def test_settings_reach_the_engine(consumer) -> None:
    consumer.set_thread_count(3)
    consumer.set_message_model(MessageModel.BROADCASTING)
    consumer.set_instance_name("one")
    consumer.set_group("other")

    assert consumer._settings["consume_threads"] == 3
    assert consumer._settings["message_model"] == "BROADCASTING"
    assert (consumer._settings["instance_name"], consumer._settings["group"]) == ("one", "other")


def test_settings_after_the_start_and_a_second_life_are_refused(consumer) -> None:
    consumer.subscribe("orders", Heard())
    consumer.start()
    consumer.start()
    with pytest.raises(ConsumerException, match=r"consume_threads is set after the start"):
        consumer.set_thread_count(3)
    consumer.shutdown()
    consumer.shutdown()
    with pytest.raises(PushConsumerStartFailed, match="make a new one"):
        consumer.start()
    with pytest.raises(ConsumerException, match="'orders': the consumer was shut down: make a new one"):
        consumer.subscribe("orders", Heard())


@pytest.mark.process
def test_a_name_server_that_does_not_answer_is_told_at_the_start(consumer, cluster, monkeypatch) -> None:
    monkeypatch.setitem(consumer._settings, "request_timeout", 0.1)
    cluster.stop("name-server")
    consumer.subscribe("orders", Heard())

    with pytest.raises(PushConsumerStartFailed, match="cannot connect to 127"):
        consumer.start()


def test_what_cannot_be_called_is_refused(consumer) -> None:
    with pytest.raises(TypeError, match="callback 7 of topic 'orders' cannot be called"):
        consumer.subscribe("orders", 7)


@pytest.mark.parametrize(
    ("value", "is_open"), [(True, True), (TraceModel.OPEN, True), (TraceModel.CLOSE, False), (False, False)]
)
def test_message_trace_reaches_the_engine(consumer, value, is_open) -> None:
    consumer.set_message_trace(value)

    assert consumer._settings["enable_trace"] is is_open


def test_a_consumer_that_was_never_started_may_be_dropped_and_shut_down() -> None:
    PushConsumer("billing").shutdown()
