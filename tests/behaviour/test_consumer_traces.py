"""Trace records of push consumers: alike on the fake cluster and on a real one."""

import pytest

from rmqtools import (
    Client,
    ClientConfig,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyStatus,
    Message,
    Perm,
    PushConsumerConfig,
)
from rmqtools.model.trace import ConsumeReturnType, SubAfterTrace, SubBeforeTrace, Trace
from tests.support.listening import FACES, FIRST, Heard
from tests.support.trace_records import await_records

SUCCESS, FAILED, RAISED = ConsumeReturnType.SUCCESS, ConsumeReturnType.FAILED, ConsumeReturnType.EXCEPTION


@pytest.fixture
def consumed(site, group, topic):
    """``consumed(answer, count, ...)``: the records of a consumer whose listener got ``count`` messages.

    It waits for ``records`` of them: two for each message unless the test says otherwise.
    """

    def consume(
        answer, count: int, *, records: int | None = None, face: str = "blocking", **settings
    ) -> list[Trace]:
        settings = {"enable_trace": True, "trace_topic": site.new_topic()} | settings
        config = PushConsumerConfig(name_server=site.name_server, group=group, consume_from=FIRST, **settings)
        heard, consumer = Heard(answer), FACES[face](config)
        consumer.subscribe(topic, heard)
        consumer.start()
        heard.wait(count)
        consumer.close()
        with Client(ClientConfig(name_server=site.name_server)) as client:
            awaited = 2 * count if records is None else records
            return await_records(client, site.admin, config.trace_topic, awaited)

    return consume


def fail_once(messages, context):
    """Raise, or answer RECONSUME_LATER, at the first delivery of a message with that body."""
    body, is_first = messages[0].body, not messages[0].reconsume_times
    context.delay_level_when_next_consume = 1
    if body == b"raise" and is_first:
        raise RuntimeError("told to fail")
    if body == b"fail" and is_first:
        suspend = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return suspend if context.is_orderly else ConsumeConcurrentlyStatus.RECONSUME_LATER
    return None


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("orderly", [False, True], ids=["concurrently", "in-order"])
def test_each_delivery_has_a_record_of_its_begin_and_of_its_result(
    producer, topic, group, consumed, face, orderly
):
    bodies = {
        producer.send(Message(topic, body, keys="k")).msg_id: body for body in (b"raise", b"fail", b"ok")
    }
    records = consumed(fail_once, 5, face=face, orderly=orderly)

    begun = [one for one in records if isinstance(one, SubBeforeTrace)]
    ended = {one.request_id: one for one in records if isinstance(one, SubAfterTrace)}
    told = [
        (
            bodies[one.msg_id],
            one.retry_times,
            ended[one.request_id].success,
            ended[one.request_id].return_type,
        )
        for one in begun
    ]
    assert sorted(told) == [
        (b"fail", 0, False, FAILED),
        (b"fail", 1, True, SUCCESS),
        (b"ok", 0, True, SUCCESS),
        (b"raise", 0, False, RAISED),
        (b"raise", 1, True, SUCCESS),
    ]
    assert {(one.group, one.keys, one.region_id) for one in begun} == {(group, "k", "DefaultRegion")}
    assert {(one.group, one.keys, one.msg_id) for one in ended.values()} == {
        (group, "k", one.msg_id) for one in begun
    }


def test_messages_behind_the_ack_index_have_failed(producer, topic, consumed):
    sent = producer.send_batch([Message(topic, b"%d" % number) for number in range(3)])

    def first_only(messages, context):
        if len(messages) > 1:
            context.ack_index = 0

    records = consumed(first_only, 3, consume_message_batch_max_size=3)
    first = [one for one in records if one.request_id == records[0].request_id]  # what failed comes again
    results = {one.msg_id: (one.success, one.return_type) for one in first if isinstance(one, SubAfterTrace)}
    assert [results[result.msg_id] for result in sent] == [(True, SUCCESS), *[(False, FAILED)] * 2]


def test_a_consumer_sends_no_records_unless_it_is_set(producer, topic, consumed):
    producer.send(Message(topic, b"body"))

    assert consumed(None, 1, records=0, enable_trace=False) == []


def test_records_that_cannot_be_stored_cost_one_line_in_the_log_and_no_message(
    site, producer, topic, consumed, caplog
):
    producer.send(Message(topic, b"body"))
    traces = site.new_topic()
    site.admin.create_topic(traces, perm=Perm.READ, broker_names=[site.broker])

    assert consumed(None, 1, records=0, trace_topic=traces) == []
    assert caplog.text.count("trace_dropped") == 1
