"""Staged writes on a fake cluster: what is decided, what is copied, and what a second call does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any
from unittest.mock import AsyncMock

import pytest

from rmqtools import ClientConfig, Message, MessageQueue, ProducerConfig, QueueRange
from rmqtools.aio import Admin, Producer, StagedWrites
from rmqtools.engine.exact import queue_writer, staged_topics
from rmqtools.engine.exact.queue_writer import QueueWriter
from rmqtools.engine.exact.staged_writes import StagedLane
from rmqtools.engine.exact.writer_decisions import WriterDecisions
from rmqtools.errors import (
    ConfigError,
    DataLossError,
    ExactAppendError,
    MessageRejectedError,
    TopicNotFoundError,
)
from rmqtools.policy.exact_append import LOCK_SECONDS
from rmqtools.protocol.wire.command import response
from rmqtools.testing import FakeCluster, Reaction, RequestCode, ResponseCode

TOPIC, STAGING = "orders", "orders-staging"
DECISIONS = "RMQTOOLS_DECISIONS-orders-staging"
ONE_ROW = 150  # bytes of a request


def queue(number: int = 0, topic: str = STAGING) -> MessageQueue:
    return MessageQueue(topic, "broker-a", number)


def staged(producer: Producer, **settings: Any) -> StagedWrites:
    given: dict[str, Any] = {"writer": "w", "settle_seconds": 0.2} | settings
    return StagedWrites(producer, topic=TOPIC, staging_topic=STAGING, **given)


@asynccontextmanager
async def scene(**settings: Any) -> AsyncIterator[tuple[FakeCluster, Producer, StagedWrites]]:
    async with FakeCluster(auto_create_topics=False) as cluster:
        cluster.create_topic(TOPIC, queues=2)
        config = ProducerConfig(name_server=cluster.name_server, max_batch_bytes=ONE_ROW)
        async with Producer(config) as producer:
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

        done = await writes.commit(1, ranges)

        assert (done.rows, done.copied, done.is_first) == (4, 4, True)
        assert (stored(cluster), stored(cluster, 1)) == (["a", "b", "c"], ["d"])


async def test_a_row_that_alone_fits_into_a_message_and_not_into_a_batch_is_copied():
    largest = Random(1).randbytes(4 * 1024 * 1024 - 1_300)  # compressed, a few bytes less than 4 MiB
    async with scene() as (cluster, producer, writes):
        before = await stage(producer, "a")
        at = (await producer.send(Message(STAGING, largest, "t"), queue=before.queue)).queue_offset
        rows = [before, QueueRange(before.queue, at, at + 1), await stage(producer, "b")]

        assert (await writes.commit(1, rows)).copied == 3
        assert [(message.body, message.tags) for message in cluster.messages(TOPIC)] == [
            (b"a", None),
            (largest, "t"),
            (b"b", None),
        ]
        assert (await writes.commit(1, rows)).copied == 0


@pytest.mark.parametrize("answered", [True, False], ids=["between requests", "without an answer"])
async def test_a_commit_that_was_interrupted_is_finished_by_another_process(answered):
    async with scene() as (cluster, producer, writes):
        ranges = [await stage(producer, "a", "b", "c")]
        async with staged(producer, writer="other") as other:
            await other.commit(1, [await stage(producer, "other")])
        await interrupt(cluster, writes.commit(1, ranges), copied=2 if answered else 0)

        async with staged(producer) as again:
            done = await again.commit(1, [await stage(producer, "a", "b", "c")])

        assert (done.rows, done.copied, done.is_first) == (3, 1 if answered else 3, False)
        assert stored(cluster) == ["other", "a", "b", "c"]


async def interrupt(cluster: FakeCluster, commit: Awaitable[object], *, copied: int) -> None:
    """Cancel a commit after it has copied some rows: what a process leaves that was killed."""
    seen: list[object] = []

    def pass_some(request: object) -> Reaction:
        seen.append(request)
        return Reaction.PASS if len(seen) <= copied else Reaction.SILENCE

    fault = cluster.fault(code=RequestCode.SEND_BATCH_MESSAGE, topic=TOPIC, answer=pass_some, times=None)
    committing = asyncio.ensure_future(commit)
    while len(seen) <= copied:
        await asyncio.sleep(0.1)
        assert not committing.done()
    committing.cancel()
    await asyncio.gather(committing, return_exceptions=True)
    fault.remove()
    cluster.advance(LOCK_SECONDS)  # brokers keep the lock for so long


async def test_of_two_processes_that_commit_the_same_rows_one_copies_them(monkeypatch):
    monkeypatch.setattr(queue_writer, "_PAUSE", 0.05)
    async with scene() as (cluster, producer, writes), staged(producer) as other:
        mine, theirs = [await stage(producer, "a", "b")], [await stage(producer, "a", "b")]

        done = await asyncio.gather(writes.commit(1, mine, digest=7), other.commit(1, theirs, digest=7))

        assert sorted(each.is_first for each in done) == [False, True]
        assert sum(each.copied for each in done) == 2
        assert stored(cluster) == ["a", "b"]


@pytest.mark.parametrize("again", [1, 2], ids=["not the last one", "the last one"])
async def test_a_commit_run_again_with_other_rows_is_refused_and_says_what_is_stored(again):
    async with scene() as (cluster, producer, writes):
        for number in (1, 2):
            await writes.commit(number, [await stage(producer, f"a{number}", f"b{number}")])

        async with staged(producer) as late:
            with pytest.raises(ExactAppendError) as caught:
                await late.commit(again, [await stage(producer, "a", "b", "added")])

        text = str(caught.value)
        assert f"commit {again} of writer 'w' has 3 rows now, and 2 rows of it are stored in topic" in text
        assert f"by {producer._client.client_id}. Nothing was added." in text
        assert ("keep_first" in text, "a checkpoint was restored" in text) == (again == 2, again == 1)
        assert stored(cluster) == ["a1", "b1", "a2", "b2"]


async def test_first_rows_are_kept_if_asked_for_and_only_by_the_last_commit(caplog):
    async with scene() as (cluster, producer, writes):
        for number in (1, 2):
            await writes.commit(number, [await stage(producer, f"a{number}")], digest=number)

        async with staged(producer) as late:
            done = await late.commit(2, [await stage(producer, "other")], digest=9, keep_first=True)
            with pytest.raises(ExactAppendError, match="commits up to 2 are decided"):
                await late.commit(1, [await stage(producer, "other")], digest=9, keep_first=True)

        assert (done.rows, done.is_first) == (1, False)
        assert "first_rows_kept" in caplog.text
        assert stored(cluster) == ["a1", "a2"]


async def test_an_empty_commit_is_decided_too():
    async with scene() as (cluster, producer, writes):
        assert (await writes.commit(1, [])).rows == 0

        with pytest.raises(ExactAppendError, match="has 1 rows now, and 0 rows of it are stored"):
            await writes.commit(1, [await stage(producer, "a")])

        assert stored(cluster) == []


def once_before(
    monkeypatch: pytest.MonkeyPatch, kind: type, name: str, happen: Callable[[Any], Awaitable[None]]
) -> None:
    """Let something happen before the next call of a method."""
    method = getattr(kind, name)

    async def late(own: Any, *args: Any) -> Any:
        monkeypatch.setattr(kind, name, method)
        await happen(own)
        return await method(own, *args)

    monkeypatch.setattr(kind, name, late)


async def test_the_number_of_an_empty_commit_is_kept_too_and_lowers_no_later_one(monkeypatch):
    async with scene() as (cluster, producer, writes):
        await writes.commit(1, [])

        async def commit_elsewhere(_: WriterDecisions) -> None:
            async with staged(producer) as other:
                await other.commit(3, [await stage(producer, "a")])

        once_before(monkeypatch, WriterDecisions, "store_place", commit_elsewhere)
        await writes.commit(2, [])
        cluster.end_at(queue(topic=DECISIONS), 0)
        async with staged(producer) as again:
            for batch in (1, 3):
                with pytest.raises(ExactAppendError, match=r"its record has expired .* or was lost"):
                    await again.commit(batch, [await stage(producer, "b")])

        assert stored(cluster) == ["a"]


async def test_a_lost_topic_of_decisions_is_an_error_and_nothing_is_stored_twice(monkeypatch):
    monkeypatch.setattr(staged_topics, "PATIENCE", 2.0)
    async with scene() as (cluster, producer, writes):
        await writes.commit(1, [await stage(producer, "a", "b")])
        async with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            await admin.delete_topic(DECISIONS)
            remedy = f"start its broker; .* rmqtools topic create {DECISIONS} --queues 1 --broker NAME"
            for call in (writes.prepare, writes.status):
                with pytest.raises(ConfigError, match=remedy):
                    await call()
            await admin.create_topic(DECISIONS, read_queue_nums=1, write_queue_nums=1)

        async with staged(producer) as again:
            with pytest.raises(ExactAppendError, match=r"its record has expired .* or was lost"):
                await again.commit(1, [await stage(producer, "a", "b")])
            await again.commit(2, [await stage(producer, "c")])

        assert stored(cluster) == ["a", "b", "c"]


async def test_a_decision_that_was_lost_while_another_process_waited_for_the_locks_is_an_error(monkeypatch):
    async with scene() as (cluster, producer, writes):
        ranges = [await stage(producer, "a")]

        async def decide_and_lose(_: QueueWriter) -> None:
            async with staged(producer) as other:
                await other.commit(1, ranges)
            cluster.end_at(queue(topic=DECISIONS), 0)

        once_before(monkeypatch, QueueWriter, "reserve", decide_and_lose)
        with pytest.raises(ExactAppendError, match=r"its record has expired .* or was lost"):
            await writes.commit(1, [await stage(producer, "a", "b")])

        assert stored(cluster) == ["a"]


async def test_a_decision_made_anew_while_a_process_waited_to_finish_the_lost_one_is_an_error(monkeypatch):
    async with scene() as (cluster, producer, writes):
        first, again = await stage(producer, "a"), await stage(producer, "a")
        with monkeypatch.context() as patched:
            patched.setattr(WriterDecisions, "store_place", AsyncMock(side_effect=asyncio.CancelledError))
            with pytest.raises(asyncio.CancelledError):
                await writes.commit(1, [again])

        async def lose_and_decide(_: QueueWriter) -> None:
            cluster.end_at(queue(topic=DECISIONS), 0)
            async with staged(producer) as other:
                assert (await other.commit(1, [first])).is_first

        once_before(monkeypatch, QueueWriter, "resume", lose_and_decide)
        with pytest.raises(ExactAppendError, match=r"its record has expired .* or was lost"):
            await writes.commit(1, [again])

        assert stored(cluster) == ["a"]


async def test_topics_of_version_0_3_0_are_refused_with_the_way_out():
    async with FakeCluster(auto_create_topics=False) as cluster:
        cluster.create_topic(TOPIC, queues=2)
        for topic in (STAGING, f"{STAGING}-decisions", f"{STAGING}-decided"):
            cluster.create_topic(topic, queues=1)
        async with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
            with pytest.raises(ConfigError, match=r"used by version 0\.3\.0.*or name another staging topic"):
                await staged(producer).prepare()


async def test_a_target_with_fewer_queues_fails_a_run_and_the_next_one_goes_on():
    async with scene() as (cluster, producer, writes):
        ranges = [await stage(producer, "a", number=1)]
        cluster.create_topic(TOPIC, queues=1)
        with pytest.raises(ConfigError, match="start the write again: it then stages rows for the queues"):
            await writes.commit(1, ranges)

        await writes.prepare()
        left = (await producer.fetch_publish_queues(STAGING), queue())
        await writes.commit(1, [await stage(producer, "a")])

        assert left == ([queue()], queue())
        assert stored(cluster) == ["a"]


async def test_rows_that_are_decided_for_a_queue_that_is_gone_name_their_way_out():
    async with scene() as (cluster, producer, writes):
        ranges = [await stage(producer, "a", "b", number=1)]
        await interrupt(cluster, writes.commit(1, ranges), copied=1)
        cluster.create_topic(TOPIC, queues=1)

        async with staged(producer) as again:
            with pytest.raises(ConfigError, match="they are decided: give the topic this queue again"):
                await again.commit(1, ranges)
            cluster.create_topic(TOPIC, queues=2)
            assert (await again.commit(1, ranges)).rows == 2

        assert stored(cluster, 1) == ["a", "b"]


async def test_rows_that_expired_before_their_copy_are_refused_and_the_commit_can_be_given_up():
    async with scene() as (cluster, producer, writes):
        await interrupt(cluster, writes.commit(1, [await stage(producer, "a", "b")]), copied=1)
        cluster.begin_at(queue(), 1)

        async with staged(producer) as again:
            with pytest.raises(DataLossError, match=r"staged rows from 0 on have expired.*give_up"):
                await again.commit(1, [])
            assert not (await again.status()).is_finished
            await again.give_up(1)
            done = await again.commit(1, [])

            assert (done.is_given_up, done.copied) == (True, 0)
            assert (await again.status()).is_finished
        assert stored(cluster) == ["a"]


async def test_the_status_of_a_write_whose_topics_were_never_made_is_an_error_at_once():
    async with FakeCluster(auto_create_topics=False) as cluster:
        cluster.create_topic(TOPIC, queues=2)
        async with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
            with pytest.raises(TopicNotFoundError, match=f"topic '{STAGING}'"):
                await asyncio.wait_for(staged(producer).status(), 5)


async def test_the_status_says_what_is_staged_decided_and_copied():
    async with scene() as (cluster, producer, writes):
        assert (await writes.status()).batch is None
        await stage(producer, "of a failed task")
        await interrupt(cluster, writes.commit(1, [await stage(producer, "a", "b", "c")]), copied=2)

        status = await writes.status()

        assert (status.batch, status.staged, status.decided, status.copied) == (1, 4, 3, 2)
        assert not status.is_finished


async def test_the_status_of_a_commit_whose_record_is_lost_has_its_number_until_it_is_given_up():
    async with scene() as (cluster, producer, writes):
        await writes.commit(7, [await stage(producer, "a")])
        cluster.end_at(queue(topic=DECISIONS), 0)
        async with staged(producer) as again:
            lost = await again.status()
            await again.give_up(7)
            given_up = await again.status()

        assert (lost.batch, lost.decided, lost.copied, lost.is_finished) == (7, 0, 0, False)
        assert (given_up.batch, given_up.is_finished) == (7, True)


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
        committing = asyncio.create_task(writes.commit(1, ranges))
        while "commit_waits" not in caplog.text and "decisions_awaited" not in caplog.text:
            await asyncio.sleep(0.1)
            assert not committing.done()
        cluster.restart(down)
        done = await committing

        assert (done.rows, done.copied) == (2, 2)
        assert sorted(message.body for message in cluster.messages(TOPIC)) == [b"a", b"b"]


async def test_a_commit_that_failed_while_it_waited_for_a_lock_takes_it_no_more(monkeypatch):
    monkeypatch.setattr(queue_writer, "_PAUSE", 0.05)
    monkeypatch.setattr(queue_writer, "_PATIENCE", 1.0)
    async with two_brokers() as (cluster, producer, writes):
        dead = QueueWriter(producer, queue(topic=TOPIC), writer=writes._name)
        await dead.reserve()
        await dead.abandon()  # as a process does that dies
        ranges = [await stage(producer, "a"), await stage(producer, "b", broker="broker-b")]
        refused = response(ResponseCode.SUCCESS, 0, body=b"storeType=defaultRocksDB\n")
        cluster.fault(code=RequestCode.GET_BROKER_CONFIG, broker="broker-b", answer=refused, delay=0.3)
        with pytest.raises(ConfigError, match="storeType=defaultRocksDB"):
            await writes.commit(1, ranges)
        cluster.advance(LOCK_SECONDS)
        await asyncio.sleep(0.3)

        assert (await writes.commit(1, ranges)).copied == 2


@pytest.mark.parametrize("answer", [Reaction.DISCONNECT, Reaction.SILENCE])
async def test_a_commit_waits_for_a_broker_that_does_not_answer_a_decision(answer, caplog):
    async with two_brokers() as (cluster, producer, writes):
        ranges = [await stage(producer, "a")]
        fault = cluster.fault(code=RequestCode.SEND_MESSAGE_V2, topic=DECISIONS, answer=answer, times=None)
        committing = asyncio.create_task(writes.commit(1, ranges))
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
        with pytest.raises(ConfigError, match=f"{DECISIONS}' is missing: start its broker"):
            await writes.prepare()
        cluster.restart("broker-a")
        await writes.prepare()

        assert (await writes.commit(1, [await stage(producer, "a")])).rows == 1


async def test_rows_that_were_copied_before_the_broker_of_decisions_went_away_are_counted(
    monkeypatch, caplog
):
    async with scene() as (cluster, producer, writes):
        ranges = [await stage(producer, "a", "b")]

        async def go_away(_: WriterDecisions) -> None:
            send = RequestCode.SEND_MESSAGE_V2
            cluster.fault(code=send, topic=DECISIONS, answer=Reaction.DISCONNECT, times=3)

        once_before(monkeypatch, WriterDecisions, "end", go_away)
        done = await writes.commit(1, ranges)

        assert "commit_waits" in caplog.text
        assert (done.is_first, done.rows, done.copied) == (True, 2, 2)
        assert stored(cluster) == ["a", "b"]


async def test_a_row_for_a_queue_that_the_target_lacks_is_refused():
    async with scene() as (_, _, writes):
        with pytest.raises(ConfigError, match="topic 'orders' does not have"):
            await writes.commit(1, [QueueRange(queue(7), 0, 1)])


async def test_a_negative_number_is_refused():
    async with scene() as (_, _, writes):
        with pytest.raises(MessageRejectedError, match="commit -1: want a number from 0 on"):
            await writes.commit(-1, [])


async def test_all_locks_are_held_before_anything_is_decided():
    async with scene() as (cluster, producer, writes):
        ranges = [await stage(producer, "a"), await stage(producer, "b", number=1)]
        before = len(cluster.requests())

        await writes.commit(1, ranges)

        codes = [request.code for request in cluster.requests()[before:]]
        decided = codes.index(RequestCode.SEND_MESSAGE_V2)
        assert codes[:decided].count(RequestCode.LOCK_BATCH_MQ) == 2


async def test_a_process_that_was_paused_after_its_decision_looks_what_another_one_has_stored(monkeypatch):
    async with scene() as (cluster, producer, writes):
        ranges = [await stage(producer, "a")]

        async def pause(lane: StagedLane) -> None:
            lane.writer._age.lost()
            cluster.advance(61.0)  # brokers keep a lock for a minute
            async with staged(producer) as other:
                assert (await other.commit(1, ranges)).copied == 1

        once_before(monkeypatch, StagedLane, "copy", pause)
        done = await writes.commit(1, ranges)

        assert (done.is_first, done.rows) == (True, 1)
        assert stored(cluster) == ["a"]
