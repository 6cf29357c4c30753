"""The simple consumer where brokers are old, silent, slow or away, or its caller goes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rmqtools import ConsumeFromWhere, SimpleConsumerConfig, aio
from rmqtools.errors import (
    AcknowledgeError,
    BrokerError,
    ClientStateError,
    ConfigError,
    ReceiptError,
    RemotingTimeoutError,
    TopicNotFoundError,
    UnsupportedError,
)
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.testing import FakeCluster, Reaction
from rmqtools.testing.fake.messages import stored_message
from tests.support.behind_proxy import show_as_proxy, show_version

POP = RequestCode.POP_MESSAGE


@contextlib.asynccontextmanager
async def member(cluster: FakeCluster, *topics: str, **settings) -> AsyncIterator[aio.SimpleConsumer]:
    """A started consumer of the topics; they have one queue at each broker."""
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    given: dict[str, Any] = {"group": "g", "consume_from": first, "wait": 5.0} | settings
    consumer = aio.SimpleConsumer(SimpleConsumerConfig(name_server=cluster.name_server, **given))
    for topic in topics:
        cluster.create_topic(topic, queues=1)
        consumer.subscribe(topic)
    async with consumer:
        yield consumer


async def asked(cluster: FakeCluster, code: RequestCode, count: int = 1) -> list[dict[str, str | None]]:
    """The header fields of requests, as soon as there are so many."""
    while len(found := cluster.requests(code)) < count:  # noqa: ASYNC110 # the fake tells nobody
        await asyncio.sleep(0.01)
    return [dict(request.ext_fields) for request in found]


def bodies(messages: list[MessageExt]) -> list[bytes]:
    return [message.body for message in messages]


async def test_in_order_a_pop_whose_answer_is_lost_is_sent_again_with_the_same_attempt_id():
    async with FakeCluster() as cluster, member(cluster, "T", fifo=True) as consumer:
        cluster.store("T", b"0", b"1")
        cluster.fault(code=POP, answer=Reaction.SWALLOW)

        receiving = asyncio.create_task(consumer.receive(max_messages=1))
        await asked(cluster, POP)
        cluster.disconnect("broker-a")
        messages = await receiving
        first, second = await asked(cluster, POP, 2)
        await consumer.ack(messages)
        (next_one,) = await consumer.receive(max_messages=1)
        (*_, third) = await asked(cluster, POP, 3)

    assert (bodies(messages), messages[0].reconsume_times, next_one.body) == ([b"0"], 0, b"1")
    assert first["attemptId"] == second["attemptId"] != third["attemptId"]


async def test_what_comes_for_a_cancelled_call_goes_to_the_next():
    async with FakeCluster() as cluster, member(cluster, "T") as consumer:
        receiving = asyncio.create_task(consumer.receive())
        await asked(cluster, POP)
        receiving.cancel()
        await asyncio.wait({receiving})
        cluster.store("T", b"kept")
        messages = await consumer.receive(wait=0)
        while not messages:
            messages = await consumer.receive(wait=0)

    assert receiving.cancelled()
    assert bodies(messages) == [b"kept"]


async def test_closing_ends_a_call_that_waits():
    async with FakeCluster() as cluster, member(cluster, "T") as consumer:
        receiving = asyncio.create_task(consumer.receive(wait=3600))
        await asked(cluster, POP)

        await consumer.close()

        assert await receiving == []
        with pytest.raises(ClientStateError, match="is closed"):
            await consumer.receive()


async def test_a_broker_that_is_away_does_not_keep_the_messages_of_another():
    async with FakeCluster(brokers=("broker-a", "broker-b")) as cluster, member(cluster, "T") as consumer:
        cluster.store("T", b"here")
        cluster.stop("broker-b")

        assert bodies(await consumer.receive()) == [b"here"]


async def test_if_every_broker_refuses_the_error_is_raised():
    async with FakeCluster() as cluster, member(cluster, "T") as consumer:
        cluster.fault(code=POP, answer=ResponseCode.NO_PERMISSION)

        with pytest.raises(BrokerError, match="16"):
            await consumer.receive()


async def test_a_topic_without_a_route_and_no_topic_are_named():
    async with FakeCluster() as cluster, member(cluster) as consumer:
        with pytest.raises(ClientStateError, match="group 'g' subscribes to nothing"):
            await consumer.receive()
        consumer.subscribe("missing")
        with pytest.raises(TopicNotFoundError, match="missing"):
            await consumer.receive()


async def test_brokers_before_5_and_proxies_are_refused_at_the_start():
    async with FakeCluster() as cluster:
        cluster.create_topic("T")
        show_version(cluster, "4.9.7")
        with pytest.raises(UnsupportedError, match=r"since 5.0.0, and broker-a.* 4.9.7; use PushConsumer"):
            await member(cluster, "T").__aenter__()
        show_as_proxy(cluster)
        with pytest.raises(UnsupportedError, match=r"SimpleConsumer.*proxy.*PushConsumer"):
            await member(cluster, "T").__aenter__()


async def test_suspend_is_refused_by_brokers_that_would_ignore_it():
    async with FakeCluster() as cluster:
        show_version(cluster, "5.3.3")
        async with member(cluster, "T") as consumer:
            (message,) = cluster.store("T", b"x") and await consumer.receive()

            with pytest.raises(UnsupportedError, match=r"suspend=True.*since 5.5.0, and broker-a.* 5.3.3"):
                await consumer.change_invisible_duration(message, 5.0, suspend=True)


async def test_a_receipt_that_may_have_been_replaced_is_refused_after_a_change_without_answer():
    async with FakeCluster() as cluster, member(cluster, "T", request_timeout=0.2) as consumer:
        cluster.store("T", b"x")
        (message,) = await consumer.receive()
        cluster.fault(code=RequestCode.CHANGE_MESSAGE_INVISIBLETIME, answer=Reaction.SWALLOW)
        with pytest.raises(RemotingTimeoutError):
            await consumer.change_invisible_duration(message, 5.0)

        with pytest.raises(AcknowledgeError, match="was replaced"):
            await consumer.ack(message)


async def test_a_message_without_a_receipt_is_refused_and_the_others_are_acknowledged():
    async with FakeCluster() as cluster, member(cluster, "T") as consumer:
        cluster.store("T", b"x")
        (received,) = await consumer.receive()

        with pytest.raises(AcknowledgeError) as caught:
            await consumer.ack([stored_message("T"), received])

        ((_, error),) = caught.value.failed
        assert isinstance(error, ReceiptError)
        assert "has no receipt" in str(error)
        assert len(cluster.requests(RequestCode.ACK_MESSAGE)) == 1


async def test_an_acknowledgement_that_a_broker_refuses_is_reported_alone():
    async with FakeCluster() as cluster, member(cluster, "T") as consumer:
        cluster.store("T", b"0", b"1", b"2")
        messages = await consumer.receive()
        cluster.fault(code=RequestCode.ACK_MESSAGE, answer=ResponseCode.SYSTEM_ERROR)

        with pytest.raises(AcknowledgeError, match="1 of 3") as caught:
            await consumer.ack(messages)

    assert [message.body for message, _ in caught.value.failed] == [b"0"]


async def test_batched_acknowledgements_share_a_request_for_each_broker():
    async with FakeCluster(brokers=("broker-a", "broker-b")) as cluster, member(cluster, "T") as consumer:
        cluster.store("T", b"0", b"1")
        cluster.store("T", b"2", b"3", queue=MessageQueue("T", "broker-b", 0))
        messages = [*await consumer.receive(), *await consumer.receive()]

        with pytest.raises(AcknowledgeError, match="1 of 5"):
            await consumer.ack([*messages, stored_message("T")], batched=True)

        assert cluster.requests(RequestCode.ACK_MESSAGE) == []
        assert len(cluster.requests(RequestCode.BATCH_ACK_MESSAGE)) == 2
        cluster.advance(120.0)
        assert await consumer.receive(wait=0) == []


async def test_batched_acknowledgements_are_refused_by_brokers_that_do_not_know_them():
    async with FakeCluster() as cluster:
        show_version(cluster, "5.1.2")
        async with member(cluster, "T") as consumer:
            cluster.store("T", b"0")
            messages = await consumer.receive()

            with pytest.raises(
                AcknowledgeError, match=r"since 5.1.3, and broker-a.* 5.1.2; leave out batched"
            ):
                await consumer.ack(messages, batched=True)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"max_messages": 0}, "max_messages=0: want 1 to 32"),
        ({"max_messages": 33}, "max_messages=33: want 1 to 32"),
        ({"invisible_duration": 0.5}, "invisible_duration=0.5: want 1 second to 12 hours"),
        ({"wait": -1}, "wait=-1: want 0 seconds to 12 hours"),
    ],
)
async def test_an_argument_out_of_range_is_refused_by_name_before_anything_is_sent(arguments, complaint):
    consumer = aio.SimpleConsumer(SimpleConsumerConfig(name_server="127.0.0.1:1", group="g"))

    with pytest.raises(ConfigError, match=complaint):
        await consumer.receive(**arguments)


async def test_several_iterations_share_the_messages():
    async with FakeCluster() as cluster, member(cluster, "T", wait=0.1) as consumer:
        cluster.store("T", *(b"%d" % n for n in range(40)))
        found: list[bytes] = []

        async def work() -> None:
            async for message in consumer:
                await consumer.ack(message)
                found.append(message.body)
                if len(found) == 40:
                    await consumer.close()

        with contextlib.suppress(ClientStateError):
            await asyncio.gather(*(work() for _ in range(4)))

    assert sorted(found, key=int) == [b"%d" % n for n in range(40)]
