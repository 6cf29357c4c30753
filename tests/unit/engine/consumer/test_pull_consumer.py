"""Pull consumers on a scripted broker set: the messages, and the brokers asked."""

import asyncio
import random

import pytest

from rmqtools import aio
from rmqtools.errors import ClientStateError, ConfigError, DataLossError
from rmqtools.model.codes import RequestCode
from rmqtools.model.message import MessageExt
from rmqtools.policy.flow import CachedByMember
from tests.unit.engine.consumer.pull_scene import Q0, Q1, TOPIC, BrokerSet, config, polled, reading
from tests.unit.engine.consumer.push_scene import until

PULL = RequestCode.PULL_MESSAGE


def offsets(messages: list[MessageExt]) -> list[int]:
    return [message.queue_offset for message in messages]


# what comes out


async def test_polls_hand_out_a_queue_in_order_and_no_more_than_asked_for():
    async with reading(BrokerSet(100)) as consumer:
        assert await polled(consumer, 100) == list(range(100))
        assert await consumer.poll(0) == []
        assert await consumer.poll(0.01) == []


async def test_queues_take_turns():
    async with reading(BrokerSet(40, queues=2)) as consumer:
        await until(lambda: len(consumer._hand_out._filled) == 2)
        turns = [{message.queue_id for message in await consumer.poll(5, 4)} for _ in range(4)]
        assert turns in ([{0}, {1}] * 2, [{1}, {0}] * 2)


async def test_a_poll_waits_for_what_comes_later():
    brokers = BrokerSet(5)
    async with reading(brokers, long_poll_timeout=0.05, pull_timeout=0.1) as consumer:
        assert await polled(consumer, 5) == [0, 1, 2, 3, 4]
        waiting = asyncio.create_task(consumer.poll(5))
        brokers.grow(0, [5])
        assert offsets(await waiting) == [5]


async def test_an_exact_range_with_gaps_is_read_once():
    gaps = [*range(10, 50), 73, 99]
    async with reading(BrokerSet(100, gaps=gaps), assign=[Q0], poll_batch_size=7) as consumer:
        await consumer.seek_to_begin(Q0)
        end, got = await consumer.max_offset(Q0), []
        while await consumer.position(Q0) < end:
            got += offsets(await consumer.poll(0.01))
        assert got == [offset for offset in range(100) if offset not in gaps]


@pytest.mark.parametrize(
    "limit",
    [{"pull_threshold_for_queue": 50}, {"pull_threshold_bytes_for_queue": 105}],
    ids=["messages", "bytes"],
)
async def test_more_than_the_threshold_is_not_fetched_before_something_is_polled(limit):
    brokers = BrokerSet(1000)
    async with reading(brokers, pull_batch_size=10, **limit) as consumer:
        await until(lambda: brokers.pulls() == [0, 10, 20, 30, 40, 50])
        await consumer.poll(0, 1)
        await asyncio.sleep(0)
        assert len(brokers.pulls()) == 6
        await consumer.poll(0, 9)
        await until(lambda: len(brokers.pulls()) == 7)


@pytest.mark.parametrize(
    "limit", [{"pull_threshold_for_all": 45}, {"pull_threshold_bytes_for_all": 90}], ids=["messages", "bytes"]
)
async def test_all_queues_together_hold_no_more_than_the_limit_and_an_answer_each(limit):
    brokers = BrokerSet(100, queues=8, low=10)
    async with reading(brokers, pull_batch_size=5, **limit) as consumer:
        await until(lambda: len(brokers.pulls()) >= 9)
        await asyncio.sleep(2)
        assert 45 < consumer._held.cached.count <= 45 + 8 * 5
        assert sorted(await polled(consumer, 8 * 90)) == sorted([*range(10, 100)] * 8)
        assert consumer._held.cached == CachedByMember()


async def test_a_paused_queue_that_fills_the_limit_of_all_does_not_stop_the_others():
    brokers = BrokerSet(100, queues=2)
    async with reading(brokers, pull_threshold_for_all=10, pull_batch_size=10) as consumer:
        await until(lambda: len(brokers.pulls()) >= 2)
        consumer.pause([Q0])
        assert await polled(consumer, 100) == list(range(100))


async def test_messages_that_are_given_up_no_longer_count_for_the_member():
    brokers = BrokerSet(100, queues=2)
    async with reading(brokers, pull_threshold_for_queue=20, pull_batch_size=10) as consumer:
        await until(lambda: len(brokers.pulls()) == 6)
        await consumer.seek(Q0, 100)
        await until(lambda: consumer._held.cached.count == consumer._held.pulled[Q1].count)
        consumer.unsubscribe(TOPIC)
        await until(lambda: consumer.queues == [])
        await until(lambda: consumer._held.cached == CachedByMember())


async def test_a_paused_queue_hands_out_and_fetches_nothing_then_goes_on_where_it_was():
    brokers = BrokerSet(100, queues=2)
    async with reading(brokers, pull_threshold_for_queue=20, pull_batch_size=10) as consumer:
        await until(lambda: len(brokers.pulls()) == 6)
        consumer.pause([Q0])
        got = [message for _ in range(10) for message in await consumer.poll(0)]
        assert {message.queue_id for message in got} == {1}
        consumer.resume([Q0])
        consumer.pause([Q1])
        assert await polled(consumer, 100) == list(range(100))


async def test_a_paused_queue_stays_paused_and_is_not_fetched_when_it_is_sought():
    brokers = BrokerSet(1000)
    async with reading(brokers, pull_threshold_for_queue=10, pull_batch_size=10) as consumer:
        await until(lambda: brokers.pulls() == [0, 10])
        consumer.pause([Q0])
        await consumer.seek(Q0, 500)
        assert await consumer.poll(0.02) == []
        assert brokers.pulls() == [0, 10]
        consumer.resume([Q0])
        assert await polled(consumer, 1) == [500]


async def test_topics_and_queues_are_given_and_returned_without_the_namespace():
    brokers = BrokerSet(10, namespace="NS")
    async with reading(brokers, namespace="NS") as consumer:
        assert {message.topic for message in await consumer.poll(5)} == {TOPIC}
        assert consumer.queues == [Q0] == await consumer.fetch_queues(TOPIC)
        await consumer.seek(Q0, 3)
        assert offsets(await consumer.poll(5, 1)) == [3]
        await consumer.commit({Q0: 4})
        assert (await consumer.committed(Q0), brokers.committed) == (4, {0: 4})
        assert {request.ext_fields["topic"] for request in brokers.of(PULL)} == {"NS%T"}
        assert {request.ext_fields["consumerGroup"] for request in brokers.of(PULL)} == {"NS%g"}
        assert brokers.topics == {"NS%T"}


# seeking


async def test_a_seek_drops_what_was_fetched_and_ends_the_long_poll_under_way():
    brokers = BrokerSet(30)
    async with reading(brokers) as consumer:
        await until(lambda: brokers.pulls()[-1:] == [30])
        await consumer.seek(Q0, 7)
        assert offsets(await consumer.poll(5, 3)) == [7, 8, 9]
        await consumer.seek_to_end(Q0)
        assert await consumer.poll(0.01) == []
        await until(lambda: consumer._puller.running == 1)
        await consumer.seek_to_begin(Q0)
        assert offsets(await consumer.poll(5, 1)) == [0]
        await consumer.seek_to_timestamp(Q0, 1012)
        assert offsets(await consumer.poll(5, 1)) == [12]


@pytest.mark.process
async def test_nothing_stale_comes_out_of_a_storm_of_seeks():
    chance = random.Random(7)
    async with reading(BrokerSet(500), pull_batch_size=5) as consumer:
        for _ in range(40):
            start, count = chance.randrange(480), chance.randrange(1, 8)
            await consumer.seek(Q0, start)
            assert await polled(consumer, count) == list(range(start, start + count))


async def test_a_seek_beyond_what_is_stored_is_refused_and_changes_nothing():
    async with reading(BrokerSet(30, low=10), assign=[Q0]) as consumer:
        with pytest.raises(DataLossError, match=r"offset 9 of .*queueId=0.: the broker has \[10, 30\)"):
            await consumer.seek(Q0, 9)
        with pytest.raises(DataLossError, match="offset 31 of"):
            await consumer.seek(Q0, 31)
        assert await polled(consumer, 2) == [10, 11]


# state


async def test_a_consumer_that_cannot_be_polled_says_why():
    brokers = BrokerSet(10)
    async with brokers.serving():
        consumer = aio.PullConsumer(config(brokers))
        with pytest.raises(ClientStateError, match="is new: call start"):
            await consumer.poll()
        async with consumer:
            with pytest.raises(ClientStateError, match="reads nothing: call subscribe or assign"):
                await consumer.poll()
            consumer.subscribe(TOPIC)
            with pytest.raises(ConfigError, match=r"timeout=-1, max_messages=None\): want >= 0"):
                await consumer.poll(-1)
        with pytest.raises(ClientStateError, match="is closed: make a new one"):
            await consumer.poll()


async def test_polls_and_iterations_end_when_the_consumer_is_closed():
    async with reading(BrokerSet(3)) as consumer:
        got = []

        async def iterate():
            async for message in consumer:
                got.append(message.queue_offset)  # noqa: PERF401 - looked at while it grows

        iterating = asyncio.create_task(iterate())
        await until(lambda: got == [0, 1, 2])
        polling = asyncio.create_task(consumer.poll(60))
        await asyncio.sleep(0)
        await consumer.close()
        assert await polling == []
        await iterating
