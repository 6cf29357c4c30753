"""What brokers are asked for where they may keep batches as one message."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rmqtools import ClientConfig, MessageQueue
from rmqtools.engine.connection.client import ClientCore
from rmqtools.errors import ConfigError
from rmqtools.policy.subscription import SQL92, build_subscription
from rmqtools.testing import FakeCluster, RequestCode, ResponseCode
from rmqtools.testing.fake.faults import FaultAnswer
from tests.support.batch_topics import BATCH_CONFIG, NORMAL_CONFIG
from tests.support.clock import ManualClock

QUEUE = MessageQueue("T", "broker-a", 0)
TAGS = build_subscription("T", "a || b", version_ms=7)


class Scene:
    def __init__(self, cluster: FakeCluster, core: ClientCore, clock: ManualClock) -> None:
        self.core, self.clock = core, clock
        self.asked = lambda: len(cluster.requests(RequestCode.GET_TOPIC_CONFIG))

    async def expression(self, wanted=TAGS) -> str:
        return (await self.core.queue_types.filter_at_broker(QUEUE, wanted)).sub_string


@asynccontextmanager
async def answering(answer: FaultAnswer) -> AsyncIterator[Scene]:
    """A client of a broker that answers so when it is asked for a topic's settings."""
    async with FakeCluster() as cluster:
        cluster.create_topic("T", queues=1)
        cluster.fault(code=RequestCode.GET_TOPIC_CONFIG, times=None, answer=answer)
        clock = ManualClock()
        core = ClientCore(ClientConfig(name_server=cluster.name_server), clock=clock)
        core.start()
        await core.routes.refresh("T")
        try:
            yield Scene(cluster, core, clock)
        finally:
            await core.close()


async def test_of_a_queue_that_holds_batches_everything_is_asked_for():
    async with answering(BATCH_CONFIG) as scene:
        asked = await scene.core.queue_types.filter_at_broker(QUEUE, TAGS)
        assert (asked.sub_string, asked.tags_set, asked.sub_version) == ("*", (), 7)


@pytest.mark.parametrize(
    ("answer", "is_logged"),
    [
        pytest.param(NORMAL_CONFIG, False, id="other-type"),
        pytest.param(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, False, id="old-broker"),
        pytest.param(ResponseCode.TOPIC_NOT_EXIST, False, id="no-such-topic"),
        pytest.param(ResponseCode.NO_PERMISSION, True, id="not-allowed-to-ask"),
    ],
)
async def test_any_other_queue_is_filtered_by_its_broker(answer, is_logged, caplog):
    async with answering(answer) as scene:
        assert await scene.expression() == "a || b"
    assert ("queue_type_unknown" in caplog.text) is is_logged


async def test_who_wants_everything_does_not_ask():
    async with answering(BATCH_CONFIG) as scene:
        assert await scene.expression(build_subscription("T", "*")) == "*"
        assert scene.asked() == 0


async def test_a_broker_is_asked_once_a_minute_for_a_topic_also_by_many_at_a_time():
    async with answering(BATCH_CONFIG) as scene:
        await asyncio.gather(*(scene.expression() for _ in range(8)))
        scene.clock.advance(59)
        await scene.expression()
        before = scene.asked()
        scene.clock.advance(2)
        await scene.expression()
        assert (before, scene.asked()) == (1, 2)


async def test_a_condition_on_a_queue_that_holds_batches_is_refused_by_topic_type_and_condition():
    wanted = build_subscription("T", "price > 5", expression_type=SQL92)
    async with answering(BATCH_CONFIG) as scene:
        with pytest.raises(ConfigError, match=r"'T' has the queue type BatchCQ.*sql='price > 5'"):
            await scene.expression(wanted)
