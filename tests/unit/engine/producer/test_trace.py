"""Traces beside sends, on a broker that answers as a test says."""

import pytest

from rmqtools import Message, ProducerConfig
from rmqtools.aio import Producer
from rmqtools.engine.producer import trace
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.messages.properties import parse_properties
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.support.scripted_cluster import stored
from tests.support.scripted_peer import run
from tests.support.scripted_transactions import TransactionBroker
from tests.support.trace_records import parse_pubs

TOPIC = "RMQ_SYS_TRACE_TOPIC"


def traceable(request: RemotingCommand, **more: str) -> RemotingCommand:
    answer = stored(request)
    answer.ext_fields = {**answer.ext_fields, "MSG_REGION": "R", **more}
    return answer


def traces_of(sends, use, **settings) -> list[RemotingCommand]:
    """Run ``use(producer, broker)``; the trace messages that reached the broker."""
    broker = TransactionBroker(sends=sends)

    async def scenario() -> None:
        async with broker.serving():
            config = ProducerConfig(name_server=broker.name_server, group="g", **settings)
            async with Producer(config) as producer:
                await use(producer, broker)

    run(scenario)
    return [r for r in broker.requests(RequestCode.SEND_MESSAGE_V2) if r.ext_fields["b"] == TOPIC]


def unwanted(request: RemotingCommand) -> RemotingCommand:
    return traceable(request, TRACE_ON="false")


async def send_three(producer, broker) -> None:
    for number in range(3):
        await producer.send(Message("T", b"body", tags="t", keys=f"k{number}"))


def test_closing_sends_what_was_stored_as_one_message_with_all_keys():
    (message,) = traces_of(traceable, send_three, enable_trace=True)

    records = parse_pubs(message.body.decode())
    assert [(r.topic, r.group, r.tags, r.keys, r.body_length) for r in records] == [
        ("T", "g", "t", f"k{number}", 4) for number in range(3)
    ]
    keys = parse_properties(message.ext_fields["i"])["KEYS"].split()
    assert sorted(keys) == sorted([r.msg_id for r in records] + ["k0", "k1", "k2"])


def test_enough_records_leave_before_closing(monkeypatch):
    monkeypatch.setattr(trace, "_BATCH", 2)

    async def use(producer, broker):
        await send_three(producer, broker)
        await broker.arrived(RequestCode.SEND_MESSAGE_V2, 4)

    first, second = traces_of(traceable, use, enable_trace=True)
    assert [len(parse_pubs(message.body.decode())) for message in (first, second)] == [2, 1]


@pytest.mark.parametrize(
    ("sends", "settings", "lines"),
    [
        pytest.param(traceable, {}, 0, id="switched-off"),
        pytest.param(stored, {"enable_trace": True}, 0, id="no-region"),
        pytest.param(unwanted, {"enable_trace": True}, 1, id="broker-says-no"),
    ],
)
def test_nothing_is_traced_and_a_broker_that_wants_none_costs_one_line_in_the_log(
    sends, settings, lines, caplog
):
    assert traces_of(sends, send_three, **settings) == []
    assert caplog.text.count("trace_switched_off") == lines


def test_a_trace_topic_that_refuses_costs_one_line_in_the_log_and_no_send(monkeypatch, caplog):
    monkeypatch.setattr(trace, "_BATCH", 1)

    def sends(request):
        if request.ext_fields["b"] == TOPIC:
            return response(ResponseCode.MESSAGE_ILLEGAL, 0, remark="no")
        return traceable(request)

    async def use(producer, broker):
        await send_three(producer, broker)
        await broker.arrived(RequestCode.SEND_MESSAGE_V2, 6)

    traces_of(sends, use, enable_trace=True)
    assert caplog.text.count("trace_dropped") == 1


def test_a_full_queue_drops_records_and_never_a_send(monkeypatch, caplog):
    monkeypatch.setattr(trace, "_MAX_QUEUED", 1)

    (message,) = traces_of(traceable, send_three, enable_trace=True)

    assert len(parse_pubs(message.body.decode())) == 1
    assert caplog.text.count("trace_dropped") == 1


def test_a_silent_trace_topic_holds_closing_up_for_a_bounded_time(monkeypatch, caplog):
    monkeypatch.setattr(trace, "_CLOSE_GRACE", 0.1)

    traces_of(lambda r: None if r.ext_fields["b"] == TOPIC else traceable(r), send_three, enable_trace=True)

    assert "trace_dropped" in caplog.text
