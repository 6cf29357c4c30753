"""Decisions of two processes about the same keys."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from rmqtools import MessageQueue, ProducerConfig
from rmqtools.aio import DecisionLog, Producer
from rmqtools.engine.exact import decision_log
from rmqtools.errors import ConfigError, ExactAppendError, RemotingTimeoutError
from rmqtools.testing import FakeCluster, RequestCode


@asynccontextmanager
async def deciding(on=None, **settings):
    """The decisions of one process, on a cluster of its own or on one that another uses."""
    async with AsyncExitStack() as stack:
        cluster = on or await stack.enter_async_context(FakeCluster())
        cluster.create_topic("decisions", queues=1)
        config = ProducerConfig(name_server=cluster.name_server, **settings)
        producer = await stack.enter_async_context(Producer(config))
        yield cluster, await stack.enter_async_context(DecisionLog(producer, "decisions"))


async def test_two_processes_agree_on_what_was_said_first():
    async with deciding() as (cluster, first), deciding(cluster) as (_, second):
        for number in range(20):
            said = await asyncio.gather(
                first.decide(f"key-{number}", b"first"), second.decide(f"key-{number}", b"second")
            )

            assert {each.record for each in said} in ({b"first"}, {b"second"})
            assert [each.is_ours for each in said].count(True) == 1


async def test_a_later_record_changes_nothing():
    async with deciding() as (_, log):
        assert await log.look_up("key") is None
        first = await log.decide("key", b"yes")
        later = await log.decide("key", b"no")

        assert (first.record, first.is_ours) == (b"yes", True)
        assert (later.record, later.is_ours, later.queue_offset) == (b"yes", False, 0)
        assert await log.look_up("key") == later


async def test_a_record_that_a_retry_stored_twice_is_still_ours():
    async with deciding(send_timeout=1.0) as (cluster, log):
        cluster.fault(code=RequestCode.SEND_MESSAGE_V2, answer=None)
        decision = await log.decide("key", b"yes")

        assert decision.is_ours


async def test_a_topic_of_two_queues_is_refused():
    async with FakeCluster() as cluster:
        cluster.create_topic("decisions", queues=2)
        async with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
            with pytest.raises(ConfigError, match="2 queues: decisions need a topic of one queue"):
                async with DecisionLog(producer, "decisions"):
                    pass


async def test_a_record_that_its_broker_does_not_show_is_an_error_after_which_it_counts(monkeypatch):
    monkeypatch.setattr(decision_log, "READABLE_TIMEOUT", 2.0)
    async with deciding() as (cluster, log):
        cluster.hide_new()
        with pytest.raises(RemotingTimeoutError, match=r"shows offsets up to 0 after 2\.0 s"):
            await log.decide("key", b"yes")
        cluster.show_all()

        assert (await log.decide("key", b"no")).record == b"yes"


async def test_one_process_decides_several_keys_at_once():
    async with deciding() as (cluster, log):
        cluster.fault(code=RequestCode.GET_MAX_OFFSET, delay=0.1)  # the first one reads after the others
        made = await asyncio.gather(*(log.decide(f"key-{number}", b"yes") for number in range(8)))

        assert all(each.is_ours for each in made)


async def test_a_topic_that_lost_its_end_has_no_decisions_to_look_up():
    async with deciding() as (cluster, log):
        await log.decide("key", b"yes")
        cluster.end_at(MessageQueue("decisions", "broker-a", 0), 0)

        for call in (log.look_up("key"), log.decide("key", b"no")):
            with pytest.raises(ExactAppendError, match=r"ends at offset \d, .* has lost its end"):
                await call
