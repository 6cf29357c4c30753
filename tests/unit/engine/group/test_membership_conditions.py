"""A member that brokers cannot serve does not join."""

import pytest

from rmqtools import aio
from rmqtools.errors import ConfigError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.wire.command import response
from tests.support.batch_topics import BATCH_CONFIG
from tests.unit.engine.consumer.pull_scene import BrokerSet, config


async def test_a_consumer_with_a_condition_on_stored_batches_does_not_start():
    brokers = BrokerSet()
    brokers.cluster.fault(code=RequestCode.CHECK_CLIENT_CONFIG, answer=response(ResponseCode.SUCCESS, 0))
    brokers.cluster.fault(code=RequestCode.GET_TOPIC_CONFIG, answer=BATCH_CONFIG)
    async with brokers.serving():
        consumer = aio.PullConsumer(config(brokers))
        consumer.subscribe("T", sql="a > 5")
        with pytest.raises(ConfigError, match="'T' has the queue type BatchCQ"):
            await consumer.start()
        assert brokers.of(RequestCode.HEART_BEAT) == []
