"""Starts and closes of a consumer that are cut off, on a scripted broker set."""

import asyncio

import pytest

from rmqtools import aio
from rmqtools.errors import ClientStateError
from rmqtools.model.codes import RequestCode
from tests.unit.engine.consumer.pull_scene import TOPIC, BrokerSet, config
from tests.unit.engine.consumer.push_scene import until

MEMBERS, STORE = RequestCode.GET_CONSUMER_LIST_BY_GROUP, RequestCode.UPDATE_CONSUMER_OFFSET


def consumer_of(brokers: BrokerSet) -> aio.PullConsumer:
    consumer = aio.PullConsumer(config(brokers, request_timeout=0.5))
    consumer.subscribe(TOPIC)
    return consumer


@pytest.mark.parametrize("begin", [aio.PullConsumer.start, aio.PullConsumer.__aenter__])
async def test_a_start_that_is_cut_off_leaves_the_group_before_it_raises(begin):
    async with BrokerSet(10).serving() as brokers:
        brokers.silence(MEMBERS)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await begin(consumer_of(brokers))
        assert brokers.left == 1


async def test_a_close_during_a_start_ends_both():
    async with BrokerSet(10).serving() as brokers:
        brokers.silence(MEMBERS)
        consumer = consumer_of(brokers)
        starting = asyncio.create_task(consumer.start())
        await until(lambda: brokers.of(MEMBERS))
        await consumer.close()
        assert brokers.left == 1
        with pytest.raises(ClientStateError, match="was closed meanwhile"):
            await starting


async def test_a_close_that_is_cut_off_is_finished_by_the_next():
    async with BrokerSet(10).serving() as brokers:
        consumer = consumer_of(brokers)
        await consumer.start()
        await consumer.poll(5)
        brokers.silence(STORE)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await consumer.close()
        assert brokers.left == 0
        await consumer.close()
        assert (brokers.left, brokers.updates[-1]) == (1, (0, 10))


async def test_two_closes_at_the_same_time_leave_the_group_once_and_both_wait_for_it():
    async with BrokerSet(10).serving() as brokers:
        consumer = consumer_of(brokers)
        await consumer.start()
        first = asyncio.create_task(consumer.close())
        await asyncio.sleep(0)
        await consumer.close()
        assert (brokers.left, first.done()) == (1, True)


async def test_a_second_start_is_refused_and_does_not_close_the_consumer():
    async with BrokerSet(10).serving() as brokers, consumer_of(brokers) as consumer:
        with pytest.raises(ClientStateError, match="is started"):
            await consumer.start()
        assert len(await consumer.poll(5, 10)) == 10


async def test_a_consumer_that_was_never_started_can_be_closed_and_not_started_then():
    async with BrokerSet(10).serving() as brokers:
        consumer = consumer_of(brokers)
        await consumer.close()
        with pytest.raises(ClientStateError, match="is closed"):
            await consumer.start()
