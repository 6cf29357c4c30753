"""Which queues a pull consumer reads, on a scripted broker set."""

import asyncio

import pytest

from rmqtools import aio
from rmqtools.errors import ClientStateError
from rmqtools.model.codes import RequestCode
from rmqtools.model.group import MessageModel
from tests.unit.engine.consumer.pull_scene import Q0, Q1, TOPIC, BrokerSet, config, polled, reading
from tests.unit.engine.consumer.push_scene import until

OFTEN = {"auto_commit_interval": 1e-6}


def offsets(messages):
    return [message.queue_offset for message in messages]


def test_assign_and_subscribe_exclude_one_another():
    subscribed, assigned = (aio.PullConsumer(config(BrokerSet(), name_server="127.0.0.1:1")) for _ in "ab")
    subscribed.subscribe(TOPIC)
    assigned.assign([Q0])

    with pytest.raises(ClientStateError, match=r"\['T'\] are subscribed.* exclude one another"):
        subscribed.assign([Q0])
    with pytest.raises(ClientStateError, match=r"topic 'T': queues are assigned.* exclude one another"):
        assigned.subscribe(TOPIC)


async def test_assigned_queues_are_taken_whatever_the_other_members_are():
    brokers = BrokerSet(10, queues=2)
    brokers.cluster.add_member("g", "127.0.0.1@another")
    async with reading(brokers, assign=[Q0, Q1]) as consumer:
        assert consumer.assignment() == [Q0, Q1]


async def test_broadcasting_all_queues_are_taken_whatever_the_other_members_are(tmp_path):
    settings = {
        "message_model": MessageModel.BROADCASTING,
        "offset_store_path": str(tmp_path / "offsets.json"),
    }

    brokers = BrokerSet(10, queues=2)
    brokers.cluster.add_member("g", "127.0.0.1@another")
    async with reading(brokers, **settings) as consumer:
        assert sorted(consumer.queues) == [Q0, Q1]


async def test_an_assignment_replaces_the_one_before_at_once_and_keeps_what_is_in_both():
    brokers = BrokerSet(30, queues=2)
    async with reading(brokers, assign=[Q0]) as consumer:
        assert await polled(consumer, 10) == list(range(10))
        consumer.assign([Q0, Q1])
        await consumer.position(Q1)
        assert sorted(await polled(consumer, 50)) == sorted([*range(10, 30), *range(30)])
        await consumer.seek(Q1, 5)
        await polled(consumer, 1)
        consumer.assign([])
        assert consumer.queues == []
        assert await consumer.poll(0.01) == []


async def test_a_queue_assigned_again_goes_on_where_it_was_consumed_to():
    brokers = BrokerSet(30)
    brokers.refused = {RequestCode.UPDATE_CONSUMER_OFFSET}  # what is noted here counts
    async with reading(brokers, assign=[Q0], **OFTEN) as consumer:
        await consumer.poll(5, 10)
        await consumer.poll(5, 5)
        consumer.assign([])
        consumer.assign([Q0])
        await consumer.position(Q0)
        assert offsets(await consumer.poll(5, 1)) == [10]


async def test_a_topic_subscribed_again_goes_on_where_it_was_consumed_to():
    brokers = BrokerSet(16, queues=8)
    async with reading(brokers, auto_commit_interval=60.0) as consumer:
        await until(lambda: len(consumer.queues) == 8)
        await polled(consumer, 16 * 8)
        assert await consumer.poll(0) == []
        consumer.unsubscribe(TOPIC)
        consumer.subscribe(TOPIC)
        await until(lambda: consumer.queues == [])
        await until(lambda: len(consumer.queues) == 8)
        assert await consumer.poll(0.2, 1000) == []
        assert set(brokers.committed.values()) == {16}


async def test_a_queue_lost_to_another_member_gives_nothing_and_is_committed_without_the_last_poll():
    brokers = BrokerSet(100, queues=2)
    async with reading(brokers) as consumer:
        consumer.pause([Q1])
        await consumer.poll(5, 10)
        await consumer.poll(5, 10)
        consumer.resume([Q1])
        brokers.cluster.add_member("g", "127.0.0.0@sorts-before-us")
        consumer._ownership.rounds.request()
        await until(lambda: consumer.queues == [Q1])
        assert {message.queue_id for message in await consumer.poll(5, 100)} == {1}
        await until(lambda: (0, 10) in brokers.updates)
        with pytest.raises(ClientStateError, match=r"queueId=0. is not held"):
            await consumer.seek(Q0, 0)
    assert brokers.committed[0] == 10


async def test_an_iteration_gives_nothing_of_a_queue_that_was_taken_away_meanwhile():
    got = []
    async with reading(BrokerSet(30), assign=[Q0]) as consumer:

        async def iterate():
            async for message in consumer:
                got.append(message.queue_offset)
                if message.queue_offset == 3:
                    consumer.assign([])

        iterating = asyncio.create_task(iterate())
        await until(lambda: consumer.queues == [] and got)
        await consumer.close()
        await iterating
    assert got == [0, 1, 2, 3]


@pytest.mark.parametrize("assign", [None, [Q0]], ids=["unsubscribed", "assigned no more"])
async def test_a_queue_given_up_right_before_closing_is_committed(assign):
    brokers = BrokerSet(30)
    settings = {} if assign is None else {"assign": assign}
    async with reading(brokers, **settings) as consumer:
        await consumer.poll(5, 10)
        await consumer.poll(5, 5)
        consumer.unsubscribe(TOPIC) if assign is None else consumer.assign([])
        await consumer.close()
    assert brokers.committed == {0: 10}


async def test_a_queue_given_up_before_is_not_committed_again_by_closing():
    """Another member may have read on meanwhile."""

    brokers = BrokerSet(30)
    async with reading(brokers) as consumer:
        await consumer.poll(5, 10)
        await consumer.poll(5, 5)
        consumer.unsubscribe(TOPIC)
        await until(lambda: brokers.committed == {0: 10})
        await until(lambda: not consumer._member.held._leaving)
        brokers.cluster.commit("g", Q0, 25)
    assert brokers.committed == {0: 25}
