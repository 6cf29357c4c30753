"""Requests of each error path in ten simulated seconds: the broker answers at once, and always the same."""

import asyncio
import contextlib

import pytest

from rmqtools import ClientConfig, Message, ProducerConfig, QueueRange, aio
from rmqtools.errors import RocketMQError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.unit.engine.consumer.pull_scene import Q0, BrokerSet, config, push_config, reading
from tests.unit.engine.consumer.pull_script import answered

pytestmark = pytest.mark.process  # seconds of work, together

SECONDS, LARGEST = 10.0, 2**63 - 1
PULL, POP = RequestCode.PULL_MESSAGE, RequestCode.POP_MESSAGE
ANSWERS = {
    "not found": lambda offset: answered(ResponseCode.PULL_NOT_FOUND, offset),
    "retry at once": lambda offset: answered(ResponseCode.PULL_RETRY_IMMEDIATELY, offset),
    "moved to and fro": lambda offset: answered(ResponseCode.PULL_OFFSET_MOVED, 7 - offset, stored=(3, 4)),
    "moved to itself": lambda offset: answered(ResponseCode.PULL_OFFSET_MOVED, offset),
    "nothing in an answer": lambda offset: answered(ResponseCode.SUCCESS, offset),
    "back": lambda offset: answered(ResponseCode.PULL_NOT_FOUND, 0),
    "the largest offset": lambda offset: answered(ResponseCode.PULL_NOT_FOUND, LARGEST, stored=(0, LARGEST)),
    "moved to the largest": lambda offset: answered(
        ResponseCode.PULL_OFFSET_MOVED, LARGEST, stored=(0, LARGEST)
    ),
    "busy": lambda offset: response(ResponseCode.SYSTEM_BUSY, 0),
    "flow control": lambda offset: response(ResponseCode.FLOW_CONTROL, 0),
    "unsubscribed": lambda offset: response(ResponseCode.SUBSCRIPTION_NOT_EXIST, 0),
    "no permission": lambda offset: response(ResponseCode.NO_PERMISSION, 0),
    "no such code": lambda offset: response(4711, 0),
}
MOST_PULLS = 30


def answer_with(brokers: BrokerSet, kind: str) -> None:
    def answer(request: RemotingCommand) -> RemotingCommand:
        return ANSWERS[kind](int(request.ext_fields["queueOffset"] or 0))

    brokers.cluster.fault(code=PULL, times=None, answer=answer)


async def listen(messages, context) -> None:
    pass


def check(brokers: BrokerSet, code: RequestCode) -> None:
    """Each kind of request stays rare, and no absurd offset was committed."""
    assert 2 <= len(brokers.of(code)) <= MOST_PULLS
    assert all(len(brokers.of(each)) <= MOST_PULLS for each in RequestCode)
    assert len(brokers.cluster.requests(RequestCode.GET_ROUTEINFO_BY_TOPIC)) <= MOST_PULLS
    assert LARGEST not in brokers.committed.values()


@pytest.mark.parametrize("kind", ANSWERS)
async def test_a_pull_consumer_asks_rarely(kind):
    brokers = BrokerSet(high=5)
    answer_with(brokers, kind)
    async with reading(brokers, delay_after_error=3.0) as consumer:
        await asyncio.sleep(SECONDS)
        await consumer.commit()
    check(brokers, PULL)


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("orderly", [False, True])
async def test_a_push_consumer_asks_rarely(kind, orderly):
    brokers = BrokerSet(high=5)
    answer_with(brokers, kind)
    async with brokers.serving():
        consumer = aio.PushConsumer(push_config(brokers, orderly=orderly))
        consumer.subscribe("T", listen)
        async with consumer:
            await asyncio.sleep(SECONDS)
    assert len([r for r in brokers.of(PULL) if r.ext_fields["topic"] == "T"]) <= MOST_PULLS
    assert LARGEST not in brokers.committed.values()
    for code in (RequestCode.HEART_BEAT, RequestCode.LOCK_BATCH_MQ, RequestCode.QUERY_CONSUMER_OFFSET):
        assert len(brokers.of(code)) <= MOST_PULLS


@pytest.mark.parametrize("kind", ANSWERS)
async def test_a_range_read_asks_rarely(kind):
    brokers = BrokerSet(high=5)
    answer_with(brokers, kind)
    async with brokers.serving(), aio.Client(ClientConfig(name_server=brokers.name_server)) as client:
        with contextlib.suppress(RocketMQError, TimeoutError):
            async with asyncio.timeout(SECONDS):
                async for _ in client.read_blocks(QueueRange(Q0, 0, 5)):
                    pass
    assert 1 <= len(brokers.of(PULL)) <= MOST_PULLS
    assert len(brokers.cluster.requests(RequestCode.GET_ROUTEINFO_BY_TOPIC)) <= MOST_PULLS


@pytest.mark.parametrize(
    "code", [ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_BUSY]
)
@pytest.mark.parametrize("face", ["push", "pull", "producer"])
async def test_a_name_server_that_gives_no_route_is_asked_rarely(code, face):
    async def use(face: str, brokers: BrokerSet) -> None:
        if face == "producer":
            async with aio.Producer(ProducerConfig(name_server=brokers.name_server, group="p")) as producer:
                await producer.send(Message("T", b"x"))
        elif face == "push":
            consumer = aio.PushConsumer(push_config(brokers))
            consumer.subscribe("T", listen)
            async with consumer:
                await asyncio.sleep(2 * SECONDS)
        else:
            async with aio.PullConsumer(config(brokers)) as pull_consumer:
                pull_consumer.subscribe("T")
                await pull_consumer.poll(2 * SECONDS)

    brokers = BrokerSet(high=5)
    brokers.cluster.fault(
        code=RequestCode.GET_ROUTEINFO_BY_TOPIC, times=None, answer=lambda request: response(code, 0)
    )
    async with brokers.serving():
        with contextlib.suppress(RocketMQError, TimeoutError):
            async with asyncio.timeout(SECONDS):
                await use(face, brokers)
    asked = len(brokers.cluster.requests(RequestCode.GET_ROUTEINFO_BY_TOPIC))
    assert 1 <= asked <= 2 * MOST_PULLS  # several need the route, each with growing waits
