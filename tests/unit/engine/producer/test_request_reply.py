"""Requests and replies on a broker that answers, pushes and falls silent as a test says."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from rmqtools import Message, MessageQueue, ProducerConfig, create_reply
from rmqtools.aio import Producer
from rmqtools.engine.producer import request_reply
from rmqtools.errors import CorruptBodyError, RemotingTimeoutError, SendError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.headers.send import ReplyMessageRequestHeader
from rmqtools.protocol.messages.compression import CompressionType, compress
from rmqtools.protocol.messages.properties import format_properties, parse_properties
from rmqtools.protocol.wire.command import encode_command, request
from rmqtools.testing import FakeCluster, Reaction
from tests.support.scripted_cluster import says, silent
from tests.support.scripted_transactions import TransactionBroker, until

MESSAGE = Message("T", b"question")
SEND = RequestCode.SEND_MESSAGE_V2


@asynccontextmanager
async def producing(broker: TransactionBroker | None = None):
    broker = broker or TransactionBroker()
    async with (
        broker.serving(),
        Producer(ProducerConfig(name_server=broker.name_server, group="g")) as producer,
    ):
        yield producer, broker


async def push_reply(
    broker: TransactionBroker,
    number: int = 0,
    *,
    body: bytes = b"answer",
    sys_flag: int = 0,
    correlation_id: str | None = None,
) -> None:
    """Reply to the request with this number, in the order of arrival; or to a request that there is not."""
    asked = (await broker.arrived(SEND, number + 1))[number]
    correlation_id = correlation_id or parse_properties(asked.ext_fields["i"])["CORRELATION_ID"]
    header = ReplyMessageRequestHeader(
        producer_group="answerers",
        topic="C_REPLY_TOPIC",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=sys_flag,
        born_timestamp=1,
        flag=0,
        properties=format_properties({"CORRELATION_ID": correlation_id}),
        born_host="127.0.0.1:1",
        store_host="127.0.0.1:2",
        store_timestamp=2,
    )
    broker.say("a", encode_command(request(header, body)))


async def test_a_request_says_who_asks_and_how_long_it_waits_after_its_brokers_know_the_client():
    async with producing() as (producer, broker):
        asking = asyncio.create_task(producer.request(MESSAGE, timeout=5))
        await push_reply(broker)
        assert (await asking).body == b"answer"
        (sent,) = broker.requests(SEND)
        properties = parse_properties(sent.ext_fields["i"])
        assert (properties["REPLY_TO_CLIENT"], properties["TTL"]) == (producer.client_id, "5000")

    codes = [command.code for command in broker.requests()]
    assert codes.index(RequestCode.HEART_BEAT) < codes.index(SEND)


async def test_only_the_first_request_on_a_connection_waits_for_a_heartbeat():
    async with producing() as (producer, broker):
        for _ in range(3):
            with pytest.raises(RemotingTimeoutError):
                await producer.request(MESSAGE, timeout=0.05)

    assert len(broker.requests(RequestCode.HEART_BEAT)) == 1


async def test_a_request_without_a_reply_is_sent_once():
    async with producing() as (producer, broker):
        with pytest.raises(RemotingTimeoutError, match="no reply to request"):
            await producer.request(MESSAGE, timeout=0.2)

    assert len(broker.requests(SEND)) == 1


async def test_a_request_whose_route_does_not_come_ends_in_its_time():
    broker = TransactionBroker()
    broker.fault(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, times=None, answer=Reaction.SILENCE)
    async with producing(broker) as (producer, _), asyncio.timeout(2):
        with pytest.raises(SendError, match="no route of topic 'T' came before"):
            await producer.request(MESSAGE, timeout=0.1)


async def test_a_reply_goes_to_the_request_that_it_answers():
    async with producing() as (producer, broker):
        first = asyncio.create_task(producer.request(MESSAGE, timeout=5))
        await broker.arrived(SEND)
        second = asyncio.create_task(producer.request(MESSAGE, timeout=5))
        await push_reply(broker, 1)
        assert (await second).body == b"answer"
        assert not first.done()
        await push_reply(broker, 0, body=b"late")
        assert (await first).body == b"late"


async def test_a_reply_counts_though_the_send_was_never_acknowledged():
    async with producing(TransactionBroker(sends=silent)) as (producer, broker):
        asking = asyncio.create_task(producer.request(MESSAGE, timeout=15))
        await push_reply(broker)
        assert (await asyncio.wait_for(asking, 2)).body == b"answer"


async def test_a_send_that_fails_ends_the_request_at_once():
    async with producing(TransactionBroker(sends=says(ResponseCode.MESSAGE_ILLEGAL))) as (producer, _):
        with pytest.raises(SendError, match="MESSAGE_ILLEGAL"):
            await producer.request(MESSAGE, timeout=15)
        assert producer._requests._waiting == {}


async def test_a_compressed_reply_arrives_as_it_was():
    async with producing() as (producer, broker):
        asking = asyncio.create_task(producer.request(MESSAGE, timeout=5))
        kind = CompressionType.ZLIB
        await push_reply(broker, body=compress(kind, b"long" * 99), sys_flag=1 | kind.sys_flag)
        reply = await asking
        assert (reply.body, reply.sys_flag & 1) == (b"long" * 99, 0)


async def test_a_reply_whose_body_cannot_be_read_arrives_and_reading_its_body_raises():
    async with producing() as (producer, broker):
        asking = asyncio.create_task(producer.request(MESSAGE, timeout=5))
        await push_reply(broker, body=b"no zlib", sys_flag=1 | CompressionType.ZLIB.sys_flag)
        reply = await asking
        assert isinstance(reply.body_error, CorruptBodyError)
        with pytest.raises(CorruptBodyError, match="ZLIB body of 7 bytes") as caught:
            _ = reply.body
        assert caught.value.raw == b"no zlib"


async def test_a_broker_that_ignores_heartbeats_costs_a_request_a_quarter_of_its_time_once():
    broker = TransactionBroker()
    broker.fault(code=RequestCode.HEART_BEAT, times=None, answer=None)
    async with producing(broker) as (producer, broker):
        now = asyncio.get_running_loop().time
        began = now()
        asking = asyncio.create_task(producer.request(MESSAGE, timeout=2))
        await push_reply(broker)
        await asking
        assert 0.5 <= now() - began < 1.5


@pytest.mark.process
async def test_replies_that_nobody_awaits_are_logged_once_a_minute_with_their_number(caplog, monkeypatch):
    assert request_reply._LOG_INTERVAL == 60.0
    monkeypatch.setattr(request_reply, "_LOG_INTERVAL", 5.0)
    async with producing() as (producer, broker):
        asking = asyncio.create_task(producer.request(MESSAGE, timeout=200))
        await broker.arrived(SEND)
        for number in range(500):
            await push_reply(broker, correlation_id=f"forged-{number}")
        await asyncio.sleep(6)
        await push_reply(broker, correlation_id="forged")
        await push_reply(broker)
        await asking
    assert caplog.text.count("reply_not_awaited") == 2
    assert "reply_not_awaited count=500 " in caplog.text


REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"


@asynccontextmanager
async def asking_on_one_of_two_brokers():
    """A producer that asks on ``broker-a``; its replies go through ``broker-b``, which lacks the topic."""
    async with FakeCluster(["broker-a", "broker-b"]) as cluster:
        cluster.create_topic("T", queues=1, broker_names=["broker-a"])
        config = ProducerConfig(name_server=cluster.name_server, group="g")
        async with Producer(config) as asker, Producer(replace(config, group="answerers")) as answerer:
            yield cluster, asker, answerer


async def stored(cluster: FakeCluster, count: int) -> None:
    await until(lambda: len(cluster.messages("T")) >= count)


async def answer(cluster: FakeCluster, answerer: Producer, count: int) -> None:
    """Answer the first requests, through the broker that lacks their topic."""
    await stored(cluster, count)
    for asked in cluster.messages("T")[:count]:
        await answerer.send(create_reply(asked, b"answer"), queue=MessageQueue(REPLY_TOPIC, "broker-b", 0))


async def test_of_requests_at_the_same_time_each_waits_until_all_brokers_can_reply():
    async with asking_on_one_of_two_brokers() as (cluster, asker, answerer):
        cluster.fault(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=REPLY_TOPIC, delay=0.5)
        asking = [asyncio.create_task(asker.request(MESSAGE, timeout=8)) for _ in range(2)]
        await until(lambda: cluster.messages("T"))
        told = cluster.requests(RequestCode.HEART_BEAT, broker="broker-b")
        await answer(cluster, answerer, 2)

        assert told
        assert [(await each).body for each in asking] == [b"answer"] * 2


async def test_a_failed_look_up_of_the_brokers_that_may_reply_is_made_again(monkeypatch):
    monkeypatch.setattr(request_reply, "_PAUSE_AFTER_FAILURE", 0.0)
    async with asking_on_one_of_two_brokers() as (cluster, asker, answerer):
        refused = ResponseCode.SYSTEM_ERROR
        cluster.fault(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=REPLY_TOPIC, answer=refused)
        with pytest.raises(RemotingTimeoutError):
            await asker.request(MESSAGE, timeout=0.5)
        asking = asyncio.create_task(asker.request(MESSAGE, timeout=8))
        await stored(cluster, 2)
        await answer(cluster, answerer, 2)

        assert (await asking).body == b"answer"


async def test_a_look_up_without_an_answer_costs_a_request_a_quarter_of_its_time_once():
    async with asking_on_one_of_two_brokers() as (cluster, asker, _):
        lost = cluster.fault(
            code=RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=REPLY_TOPIC, answer=None, times=None
        )
        for count in (1, 2):
            asking = asyncio.create_task(asker.request(MESSAGE, timeout=2))
            await stored(cluster, count)
            asking.cancel()

        assert lost.fired() == 1
