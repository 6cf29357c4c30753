"""Decisions of one writer: which ones count, and what brokers know of those that are lost."""

import asyncio

import pytest

from rmqtools.engine.exact.queue_writer import QueueWriter
from rmqtools.engine.exact.writer_decisions import WriterDecisions
from rmqtools.errors import ExactAppendError
from rmqtools.policy.staged import BatchDecision
from rmqtools.testing import RequestCode
from tests.unit.engine.exact.test_staged_writes import DECISIONS, queue, scene, stage, staged, stored


async def test_a_decision_that_arrives_after_later_ones_does_not_count():
    async with scene() as (cluster, producer, writes), staged(producer) as other:
        await other.commit(1, [await stage(producer, "a1")])
        late = cluster.fault(code=RequestCode.SEND_MESSAGE_V2, topic=DECISIONS, delay=2.0)
        committing = asyncio.ensure_future(writes.commit(2, [await stage(producer, "paused")], digest=1))
        while not late.fired():  # noqa: ASYNC110 - the cluster has no event for it
            await asyncio.sleep(0.1)
        for number in (2, 3):
            await other.commit(number, [await stage(producer, f"a{number}", number=1)], digest=number)

        with pytest.raises(ExactAppendError, match="has 1 rows now, and 1 other rows of it are stored"):
            await committing

        async with staged(producer) as again:
            await again.commit(4, [await stage(producer, "a4")])
        assert (stored(cluster), stored(cluster, 1)) == (["a1", "a4"], ["a2", "a3"])


async def test_numbers_may_be_left_out():
    async with scene() as (cluster, producer, writes):
        await writes.commit(7, [await stage(producer, "a")])
        await writes.commit(9, [await stage(producer, "b")])

        async with staged(producer) as again:
            with pytest.raises(ExactAppendError, match=r"its record has expired .* or was lost"):
                await again.commit(8, [await stage(producer, "c")])

        assert stored(cluster) == ["a", "b"]


@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(lambda cluster, end: cluster.begin_at(queue(topic=DECISIONS), end), id="expired"),
        pytest.param(lambda cluster, _: cluster.end_at(queue(topic=DECISIONS), 2), id="cut-off"),
    ],
)
async def test_a_commit_whose_decision_is_lost_is_refused_and_the_next_one_is_not(lose):
    async with scene() as (cluster, producer, writes):
        for number in (1, 2):
            await writes.commit(number, [await stage(producer, f"a{number}")])
        lose(cluster, len(cluster.messages(DECISIONS)))

        async with staged(producer) as again:
            with pytest.raises(ExactAppendError, match=r"its record has expired .* or was lost"):
                await again.commit(2, [await stage(producer, "a2")])
            await again.commit(3, [await stage(producer, "a3")])

        assert stored(cluster) == ["a1", "a2", "a3"]


async def test_an_earlier_commit_run_again_does_not_hide_that_later_decisions_are_lost():
    async with scene() as (cluster, producer, writes):
        for number in (1, 2):
            await writes.commit(number, [await stage(producer, f"a{number}")])
        cluster.end_at(queue(topic=DECISIONS), 1)  # of all records, the first one is left

        async with staged(producer) as again:
            await again.commit(1, [await stage(producer, "a1")])
            with pytest.raises(ExactAppendError, match="or was lost"):
                await again.commit(2, [await stage(producer, "a2")])

        assert stored(cluster) == ["a1", "a2"]


async def test_a_commit_whose_decision_is_lost_can_be_given_up():
    async with scene() as (cluster, producer, writes):
        await writes.commit(1, [await stage(producer, "a")])
        cluster.end_at(queue(topic=DECISIONS), 0)

        async with staged(producer) as again:
            await again.give_up(1)
            done = await again.commit(1, [await stage(producer, "a")])
            await again.commit(2, [await stage(producer, "b")])

        assert done.is_given_up
        assert stored(cluster) == ["a", "b"]


async def test_a_process_that_was_paused_after_its_decision_lowers_no_number(monkeypatch):
    async with scene() as (cluster, producer, writes):
        ranges, writers = [await stage(producer, "a")], []
        decide, reserve = WriterDecisions.decide, QueueWriter.reserve

        async def noted_reserve(writer: QueueWriter) -> int:
            writers.append(writer)
            return await reserve(writer)

        async def paused_decide(decisions: WriterDecisions, wanted: BatchDecision) -> BatchDecision:
            monkeypatch.undo()
            decided = await decide(decisions, wanted)
            writers[0]._age.lost()
            cluster.advance(61.0)  # brokers keep a lock for a minute
            async with staged(producer) as other:
                await other.commit(1, ranges)
                await other.commit(2, [await stage(producer, "b", number=1)])
            return decided

        monkeypatch.setattr(QueueWriter, "reserve", noted_reserve)
        monkeypatch.setattr(WriterDecisions, "decide", paused_decide)
        await writes.commit(1, ranges)

        cluster.end_at(queue(topic=DECISIONS), 0)
        async with staged(producer) as again:
            with pytest.raises(ExactAppendError, match="or was lost"):
                await again.commit(2, [await stage(producer, "b", number=1)])
        assert (stored(cluster), stored(cluster, 1)) == (["a"], ["b"])
