"""Spans and metrics of clients on the fake cluster."""

import threading
from functools import partial

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from rmqtools import (
    ConsumeConcurrentlyStatus,
    LocalTransactionState,
    Message,
    Producer,
    ProducerConfig,
    PullConsumer,
    PullConsumerConfig,
    PushConsumer,
    PushConsumerConfig,
    TransactionProducer,
)
from rmqtools.errors import SendManyError, UnknownOutcomeError
from rmqtools.observer import current_observer
from rmqtools.otel import uninstrument
from rmqtools.testing import Reaction, RequestCode
from tests.support.cluster_scene import wait_until


@pytest.fixture
def observed(recorded, fake_rocketmq, topic):
    """A producer that is made while telemetry is on."""
    config = ProducerConfig(
        name_server=fake_rocketmq.name_server, group="senders", retry_times_when_send_failed=1
    )
    with Producer(config) as producer:
        yield producer


@pytest.fixture
def consume(recorded, fake_rocketmq):
    """``consume(topic, listener)``: a started consumer that is made while telemetry is on."""
    consumers = []

    def consume(topic, listener, **settings):
        given = {"group": "billing", "consume_from": "CONSUME_FROM_FIRST_OFFSET"} | settings
        consumer = PushConsumer(PushConsumerConfig(name_server=fake_rocketmq.name_server, **given))
        consumer.subscribe(topic, listener)
        consumer.start()
        consumers.append(consumer)
        return consumer

    yield consume
    for consumer in consumers:
        consumer.close()


def test_a_send_is_a_span_of_the_callers_trace_and_its_context_is_in_the_message(
    recorded, observed, topic, drain
):
    with recorded.tracers.get_tracer("user").start_as_current_span("order") as outer:
        result = observed.send(Message(topic, b"12345", tags="new", keys=["k1", "k2"], properties={"p": "v"}))

    (span,), (message,) = recorded.spans(f"send {topic}"), drain(topic, 1)
    assert span.kind is SpanKind.PRODUCER
    assert span.parent.span_id == outer.get_span_context().span_id
    trace_id, span_id = span.context.trace_id, span.context.span_id
    assert message.properties["traceparent"].startswith(f"00-{trace_id:032x}-{span_id:016x}-")
    assert message.properties["p"] == "v"
    host, _, port = result.attempts[-1].broker_addr.rpartition(":")
    assert dict(span.attributes) == {
        "messaging.system": "rocketmq",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": topic,
        "messaging.destination.partition.id": f"{result.queue.broker_name}/{result.queue.queue_id}",
        "messaging.client.id": observed.client_id,
        "messaging.message.id": result.msg_id,
        "messaging.message.body.size": 5,
        "messaging.rocketmq.message.type": "normal",
        "messaging.rocketmq.message.tag": "new",
        "messaging.rocketmq.message.keys": ("k1", "k2"),
        "rmqtools.producer.group.name": "senders",
        "rmqtools.send.attempts": 1,
        "server.address": host,
        "server.port": int(port),
    }


def test_sends_are_counted_by_outcome_and_retries_too(recorded, observed, topic, fake_rocketmq):
    observed.send(Message(topic, b"1"))
    observed.send_many([Message(topic, b"2"), Message(topic, b"3")])
    fault = fake_rocketmq.fault(code=RequestCode.SEND_MESSAGE_V2, times=1, answer=Reaction.DISCONNECT)
    observed.send(Message(topic, b"4"))
    fake_rocketmq.fault(code=RequestCode.SEND_MESSAGE_V2, times=None, answer=Reaction.DISCONNECT)
    with pytest.raises(UnknownOutcomeError):
        observed.send(Message(topic, b"5"))

    assert fault.fired() == 1
    sent = "messaging.client.sent.messages"
    assert recorded.value(sent, rmqtools__send__outcome="stored", messaging__destination__name=topic) == 4
    assert recorded.value(sent, rmqtools__send__outcome="unknown") == 1
    assert recorded.value("rmqtools.send.retries") == 1
    assert sum(point.count for _, point in recorded.points("messaging.client.operation.duration")) == 4
    *_, failed = recorded.spans(f"send {topic}")
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes["error.type"] == "UnknownOutcomeError"


def test_of_a_send_of_many_the_messages_stored_and_failed_are_counted(
    recorded, observed, topic, fake_rocketmq
):
    fake_rocketmq.fault(code=RequestCode.SEND_BATCH_MESSAGE, times=None, answer=Reaction.DISCONNECT)
    with pytest.raises(SendManyError):
        observed.send_many([Message(topic, b"%d" % n) for n in range(3)])

    assert recorded.value("messaging.client.sent.messages", rmqtools__send__outcome="unknown") == 3


def test_a_listener_runs_in_a_child_of_the_span_that_sent_its_message(recorded, observed, consume, topic):
    tracer = recorded.tracers.get_tracer("user")

    def listen(messages, context):
        tracer.start_span("booking").end()

    observed.send(Message(topic, b"1"))
    consume(topic, listen)
    wait_until(lambda: recorded.spans(f"process {topic}"))

    (sent,), (processed,) = recorded.spans(f"send {topic}"), recorded.spans(f"process {topic}")
    (booking,) = recorded.spans("booking")
    assert processed.kind is SpanKind.CONSUMER
    assert processed.parent.span_id == sent.context.span_id
    assert booking.parent.span_id == processed.context.span_id
    assert processed.attributes["messaging.consumer.group.name"] == "billing"
    assert processed.attributes["messaging.message.id"] == sent.attributes["messaging.message.id"]
    consumed = partial(
        recorded.value, "messaging.client.consumed.messages", messaging__destination__name=topic
    )
    wait_until(lambda: consumed() == 1)  # counted right after the span has ended, on another thread


def test_a_batch_has_links_to_the_spans_that_sent_it(recorded, observed, consume, topic, fake_rocketmq):
    observed.send_many([Message(topic, b"1"), Message(topic, b"2")])
    consume(topic, lambda messages, context: None, consume_message_batch_max_size=2)
    wait_until(lambda: recorded.spans(f"process {topic}"))

    (sent,), (processed, *_) = recorded.spans(f"send {topic}"), recorded.spans(f"process {topic}")
    assert processed.attributes["messaging.batch.message_count"] == 2
    assert processed.parent is None
    assert {link.context.span_id for link in processed.links} == {sent.context.span_id}


def test_a_process_span_is_no_child_of_the_span_in_which_its_consumer_was_started(
    recorded, observed, consume, topic
):
    observed.send_many([Message(topic, b"1"), Message(topic, b"2")])
    with recorded.tracers.get_tracer("user").start_as_current_span("start-up"):
        consume(topic, lambda messages, context: None, consume_message_batch_max_size=2)
    wait_until(lambda: recorded.spans(f"process {topic}"))

    assert recorded.spans(f"process {topic}")[0].parent is None


@pytest.mark.parametrize(
    ("answer", "kind"), [(RuntimeError("no"), "RuntimeError"), (None, "RECONSUME_LATER")]
)
def test_a_listener_that_fails_marks_its_span(recorded, observed, consume, topic, answer, kind):
    def listen(messages, context):
        if answer is not None:
            raise answer
        return ConsumeConcurrentlyStatus.RECONSUME_LATER

    observed.send(Message(topic, b"1"))
    consume(topic, listen)
    wait_until(lambda: recorded.spans(f"process {topic}"))

    processed = recorded.spans(f"process {topic}")[0]
    assert processed.status.status_code is StatusCode.ERROR
    assert processed.attributes["error.type"] == kind


def test_a_message_of_the_java_agent_continues_its_trace(recorded, consume, topic, fake_rocketmq):
    header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    uninstrument()  # the sender is not ours
    with Producer(ProducerConfig(name_server=fake_rocketmq.name_server)) as producer:
        producer.send(Message(topic, b"1", properties={"traceparent": header}))
    recorded.start()
    consume(topic, lambda messages, context: None)
    wait_until(lambda: recorded.spans(f"process {topic}"))

    (processed,) = recorded.spans(f"process {topic}")
    assert f"{processed.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{processed.parent.span_id:016x}" == "b7ad6b7169203331"


def test_a_poll_is_a_span_with_links(recorded, observed, topic, fake_rocketmq):
    observed.send(Message(topic, b"1"))
    config = PullConsumerConfig(
        name_server=fake_rocketmq.name_server, group="pullers", consume_from="CONSUME_FROM_FIRST_OFFSET"
    )
    consumer = PullConsumer(config)
    consumer.subscribe(topic)
    with consumer:
        wait_until(lambda: consumer.poll(1.0))

    (sent,), (received,) = recorded.spans(f"send {topic}"), recorded.spans(f"receive {topic}")
    assert received.kind is SpanKind.CLIENT
    assert [link.context.span_id for link in received.links] == [sent.context.span_id]


@pytest.mark.process  # gauges are looked at once a second
def test_gauges_show_what_a_consumer_holds_until_it_is_closed(recorded, observed, consume, topic):
    for _ in range(8):
        observed.send(Message(topic, b"12345"))
    consumer = consume(topic, lambda messages, context: None)
    gauges = "rmqtools.consumer."

    wait_until(lambda: recorded.value(f"{gauges}queues", messaging__destination__name=topic) == 4)
    wait_until(lambda: recorded.value("messaging.client.consumed.messages") == 8)
    wait_until(lambda: recorded.value(f"{gauges}cached.size") == 0)
    wait_until(lambda: recorded.value(f"{gauges}lag", messaging__destination__name=topic) == 0)
    assert recorded.value(f"{gauges}rebalances", messaging__consumer__group__name="billing") >= 1
    wait_until(lambda: recorded.points("rmqtools.loop.delay"))
    consumer.close()
    assert recorded.points(f"{gauges}queues") == []


@pytest.mark.process  # gauges are looked at once a second
def test_lag_and_cached_bytes_grow_while_a_listener_waits(recorded, observed, consume, topic):
    go = threading.Event()
    for _ in range(8):
        observed.send(Message(topic, b"12345"))
    consume(topic, lambda messages, context: go.wait(60) and None)
    try:
        wait_until(lambda: recorded.value("rmqtools.consumer.lag", messaging__destination__name=topic) == 8)
        wait_until(lambda: recorded.value("rmqtools.consumer.cached.size") == 40)
    finally:
        go.set()


def test_without_telemetry_messages_are_sent_as_they_are(recorded, topic, fake_rocketmq, drain):
    uninstrument()
    with Producer(ProducerConfig(name_server=fake_rocketmq.name_server)) as producer:
        producer.send(Message(topic, b"1"))

    (message,) = drain(topic, 1)
    assert "traceparent" not in message.properties
    assert recorded.exporter.get_finished_spans() == ()
    assert current_observer() is None


def test_every_way_to_send_has_one_span_and_puts_its_context_into_each_message(
    recorded, observed, topic, drain
):
    with recorded.tracers.get_tracer("user").start_as_current_span("outer") as outer:
        observed.send_oneway(Message(topic, b"1"))
        observed.send_orderly(Message(topic, b"2", sharding_key="k"))
        observed.send_batch([Message(topic, b"3"), Message(topic, b"4")])
        observed.send_async(Message(topic, b"5")).result(60)

    trace_id = f"{outer.get_span_context().trace_id:032x}"
    assert {each.properties["traceparent"].split("-")[1] for each in drain(topic, 5)} == {trace_id}
    assert len(recorded.spans(f"send {topic}")) == 4
    assert recorded.spans(f"send {topic}")[2].attributes["messaging.batch.message_count"] == 2


def test_a_transaction_is_one_span_around_its_local_transaction(recorded, fake_rocketmq, topic, drain):
    class Listener:
        def execute_local_transaction(self, message, arg):
            recorded.tracers.get_tracer("user").start_span("local").end()
            return LocalTransactionState.COMMIT_MESSAGE

        def check_local_transaction(self, message):
            return LocalTransactionState.COMMIT_MESSAGE

    config = ProducerConfig(name_server=fake_rocketmq.name_server, group="transactions")
    with TransactionProducer(config, Listener()) as producer:
        producer.send_message_in_transaction(Message(topic, b"1"))

    ((message,), (span,)) = drain(topic, 1), recorded.spans(f"send {topic}")
    assert message.properties["traceparent"].split("-")[2] == f"{span.context.span_id:016x}"
    assert span.attributes["messaging.message.id"] == message.msg_id
    assert span.attributes["messaging.rocketmq.message.type"] == "transaction"
