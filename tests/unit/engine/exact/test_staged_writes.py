"""Staged writes on a fake cluster: what is decided, what is copied, and what a second call does."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from rmqtools import ClientConfig, Message, MessageQueue, ProducerConfig, QueueRange
from rmqtools.aio import Admin, Producer, StagedWrites
from rmqtools.engine.exact import staged_topics, writer_lock
from rmqtools.errors import ConfigError, DataLossError, ExactAppendError, MessageRejectedError
from rmqtools.testing import FakeCluster, Reaction, RequestCode

TOPIC, STAGING = "orders", "orders-staging"


def queue(number: int = 0, topic: str = STAGING) -> MessageQueue:
    return MessageQueue(topic, "broker-a", number)


def staged(producer: Producer, **settings: Any) -> StagedWrites:
    given: dict[str, Any] = {"writer": "w", "settle_seconds": 0.2} | settings
    return StagedWrites(producer, topic=TOPIC, staging_topic=STAGING, **given)


@asynccontextmanager
async def scene(**settings: Any) -> AsyncIterator[tuple[FakeCluster, Producer, StagedWrites]]:
    async with FakeCluster(auto_create_topics=False) as cluster:
        cluster.create_topic(TOPIC, queues=2)
        async with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
            writes = staged(producer, **settings)
            await writes.prepare()
            async with writes:
                yield cluster, producer, writes


async def stage(producer: Producer, *bodies: str, number: int = 0, broker: str = "broker-a") -> QueueRange:
    """Store rows in the staging topic; return where they are."""
    place = MessageQueue(STAGING, broker, number)
    results = [await producer.send(Message(STAGING, body.encode()), queue=place) for body in bodies]
    return QueueRange(place, results[0].queue_offset, results[-1].queue_offset + 1)


def stored(cluster: FakeCluster, number: int = 0) -> list[str]:
    return [message.body.decode() for message in cluster.messages(TOPIC, queue(number, TOPIC))]


async def test_the_rows_of_a_commit_are_stored_and_no_others():
    async with scene() as (cluster, producer, writes):
        await stage(producer, "of a failed task")
        first = await stage(producer, "a", "b")
        await stage(producer, "of another failed task")
        ranges = [first, await stage(producer, "c"), await stage(producer, "d", number=1)]

        done = await writes.commit("1", ranges)

        assert (done.rows, done.copied, done.is_first) == (4, 4, True)
        assert (stored(cluster), stored(cluster, 1)) == (["a", "b", "c"], ["d"])


async def test_a_commit_called_again_copies_nothing_whatever_was_staged_meanwhile():
    async with scene() as (cluster, producer, writes):
        await writes.commit("1", [await stage(producer, "a")])

        async with staged(producer) as again:
            done = await again.commit("1", [await stage(producer, "a run again")])

        assert (done.rows, done.copied, done.is_first) == (1, 0, False)
        assert stored(cluster) == ["a"]


@pytest.mark.parametrize("answered", [True, False], ids=["between requests", "without an answer"])
async def test_a_commit_that_was_interrupted_is_finished_by_another_process(answered):
    async with scene() as (cluster, producer, writes):
        ranges = [await stage(producer, "a", "b", "c")]
        async with staged(producer, writer="other") as other:
            await other.commit("x", [await stage(producer, "other")])
        await _decide_and_copy(producer, writes, ranges, rows=2 if answered else 0)

        async with staged(producer) as again:
            done = await again.commit("1", [await stage(producer, "a run again")])

        assert (done.rows, done.copied, done.is_first) == (3, 1 if answered else 3, False)
        assert stored(cluster) == ["other", "a", "b", "c"]


async def _decide_and_copy(
    producer: Producer, writes: StagedWrites, ranges: Sequence[QueueRange], *, rows: int
) -> None:
    """Decide like a commit, and copy only the first rows: what a process leaves that was killed."""
    records = await writes._decisions()
    async with AsyncExitStack() as opened:
        parts, lanes, _ = await writes._decide(opened, records, "w/1", ranges)
        first = parts[0].ranges[0].begin
        await lanes[0]._copy([(first, first + rows)])


async def test_of_two_processes_that_commit_the_same_one_decides_and_rows_are_stored_once(monkeypatch):
    monkeypatch.setattr(writer_lock, "_PAUSE", 0.05)
    async with scene() as (cluster, producer, writes), staged(producer) as other:
        mine, theirs = [await stage(producer, "a", "b")], [await stage(producer, "c", "d")]

        done = await asyncio.gather(writes.commit("1", mine), other.commit("1", theirs))

        assert sorted(each.is_first for each in done) == [False, True]
        assert [each.copied for each in done if each.is_first] in ([0], [2])
        assert sum(each.copied for each in done) == 2
        assert stored(cluster) in (["a", "b"], ["c", "d"])


async def test_an_empty_commit_is_decided_too():
    async with scene() as (cluster, producer, writes):
        assert (await writes.commit("1", [])).rows == 0

        done = await writes.commit("1", [await stage(producer, "a")])

        assert (done.rows, done.is_first) == (0, False)
        assert stored(cluster) == []


async def test_a_lost_topic_of_decisions_is_replaced_by_the_copies_on_the_brokers(monkeypatch):
    monkeypatch.setattr(staged_topics, "PATIENCE", 2.0)
    async with scene() as (cluster, producer, writes):
        await _decide_and_copy(producer, writes, [await stage(producer, "a", "b")], rows=1)
        async with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            await admin.delete_topic(f"{STAGING}-decisions")
            remedy = (
                f"start its broker; .* rmqtools topic create {STAGING}-decisions --queues 1 --broker NAME"
            )
            for call in (writes.prepare, writes.status):
                with pytest.raises(ConfigError, match=remedy):
                    await call()
            await admin.create_topic(f"{STAGING}-decisions", read_queue_nums=1, write_queue_nums=1)

        async with staged(producer) as again:
            done = await again.commit("1", [await stage(producer, "a run again")])

        assert (done.rows, done.copied) == (2, 1)
        assert stored(cluster) == ["a", "b"]


async def test_rows_that_expired_before_their_copy_are_refused_and_the_commit_can_be_given_up():
    async with scene() as (cluster, producer, writes):
        await _decide_and_copy(producer, writes, [await stage(producer, "a", "b")], rows=1)
        cluster.begin_at(queue(), 1)

        async with staged(producer) as again:
            with pytest.raises(DataLossError, match=r"staged rows from 0 on have expired.*give_up"):
                await again.commit("1", [])
            assert not (await again.status()).is_finished
            await again.give_up("1")
            done = await again.commit("1", [])

            assert (done.is_given_up, done.copied) == (True, 0)
            assert (await again.status()).is_finished
        assert stored(cluster) == ["a"]


async def test_what_is_not_decided_cannot_be_given_up():
    async with scene() as (_, _, writes):
        with pytest.raises(ConfigError, match="nothing is decided for 'w/1'"):
            await writes.give_up("1")


async def test_the_status_says_what_is_staged_decided_and_copied():
    async with scene() as (_, producer, writes):
        assert (await writes.status()).key is None
        await stage(producer, "of a failed task")
        await _decide_and_copy(producer, writes, [await stage(producer, "a", "b", "c")], rows=2)

        status = await writes.status()

        assert (status.key, status.staged, status.decided, status.copied) == ("1", 4, 3, 2)
        assert not status.is_finished


@asynccontextmanager
async def two_brokers() -> AsyncIterator[tuple[FakeCluster, Producer, StagedWrites]]:
    async with FakeCluster(["broker-a", "broker-b"], auto_create_topics=False) as cluster:
        cluster.create_topic(TOPIC, queues=1)
        async with (
            Producer(ProducerConfig(name_server=cluster.name_server)) as producer,
            staged(producer) as it,
        ):
            await it.prepare()
            yield cluster, producer, it


@pytest.mark.parametrize("in_route", [True, False], ids=["listed", "not listed"])
@pytest.mark.parametrize("down", ["broker-a", "broker-b"])
async def test_a_commit_waits_for_a_broker_that_is_down(down, in_route, caplog):
    async with two_brokers() as (cluster, producer, writes):
        ranges = [await stage(producer, "a"), await stage(producer, "b", broker="broker-b")]
        cluster.stop(down, in_route=in_route)
        committing = asyncio.create_task(writes.commit("1", ranges))
        while "commit_waits" not in caplog.text and "decisions_awaited" not in caplog.text:
            await asyncio.sleep(0.1)
            assert not committing.done()
        cluster.restart(down)
        done = await committing

        assert (done.rows, done.copied) == (2, 2)
        assert sorted(message.body for message in cluster.messages(TOPIC)) == [b"a", b"b"]


@pytest.mark.parametrize("answer", [Reaction.DISCONNECT, Reaction.SILENCE])
async def test_a_commit_waits_for_a_broker_that_does_not_answer_a_decision(answer, caplog):
    async with two_brokers() as (cluster, producer, writes):
        ranges = [await stage(producer, "a")]
        topic = f"{STAGING}-decisions"
        fault = cluster.fault(code=RequestCode.SEND_MESSAGE_V2, topic=topic, answer=answer, times=None)
        committing = asyncio.create_task(writes.commit("1", ranges))
        while "commit_waits" not in caplog.text:
            await asyncio.sleep(0.1)
            assert not committing.done()
        fault.remove()

        assert (await committing).copied == 1
        assert stored(cluster) == ["a"]


async def test_no_second_topic_of_decisions_is_made_while_the_broker_of_the_first_is_down(monkeypatch):
    monkeypatch.setattr(staged_topics, "PATIENCE", 2.0)
    async with two_brokers() as (cluster, producer, writes):
        cluster.stop("broker-a", in_route=False)
        with pytest.raises(ConfigError, match="-decisions' is missing: start its broker"):
            await writes.prepare()
        cluster.restart("broker-a")
        await writes.prepare()

        assert (await writes.commit("1", [await stage(producer, "a")])).rows == 1


async def test_a_row_for_a_queue_that_the_target_lacks_is_refused():
    async with scene() as (_, _, writes):
        with pytest.raises(ConfigError, match="topic 'orders' does not have"):
            await writes.commit("1", [QueueRange(queue(7), 0, 1)])


async def test_a_key_with_spaces_is_refused():
    async with scene() as (_, _, writes):
        with pytest.raises(MessageRejectedError, match="key 'a b': want a word"):
            await writes.commit("a b", [])


async def test_a_broker_that_keeps_messages_too_shortly_is_refused():
    async with scene() as (_, _, writes):
        with pytest.raises(ConfigError, match=r"fileReservedTime=.* hours: less than the longest outage"):
            await writes.prepare(longest_outage=1e9)


async def test_a_record_that_is_none_of_ours_is_refused():
    async with scene() as (_, _, writes):
        records = await writes._decisions()
        await records.decide("w/1", b"yes")

        with pytest.raises(ExactAppendError, match="is not one of staged writes"):
            await writes.commit("1", [])


async def test_all_locks_are_held_before_anything_is_decided():
    async with scene() as (cluster, producer, writes):
        ranges = [await stage(producer, "a"), await stage(producer, "b", number=1)]
        before = len(cluster.requests())

        await writes.commit("1", ranges)

        codes = [request.code for request in cluster.requests()[before:]]
        decided = codes.index(RequestCode.SEND_MESSAGE_V2)
        assert codes[:decided].count(RequestCode.LOCK_BATCH_MQ) == 2


async def test_a_process_that_was_paused_after_its_decision_looks_what_another_one_has_stored():
    async with scene() as (cluster, producer, writes):
        ranges = [await stage(producer, "a", "b")]
        records = await writes._decisions()
        async with AsyncExitStack() as opened:
            _, lanes, is_first = await writes._decide(opened, records, "w/1", ranges)
            paused = lanes[0]._appender
            await paused._lock.release()  # as brokers do after a minute
            async with staged(producer) as other:
                done = await other.commit("1", [])
            await lanes[0].copy()

        assert (is_first, done.copied) == (True, 2)
        assert stored(cluster) == ["a", "b"]
