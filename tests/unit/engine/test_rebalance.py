"""Rounds of a member whose queues cannot always be released at once."""

import asyncio

import pytest

from rmqtools.allocate import AllocateAveragely
from rmqtools.engine.process_queue import ProcessQueue
from rmqtools.engine.rebalance import Rebalance
from rmqtools.model.group import ConsumeType
from rmqtools.model.queue import MessageQueue
from tests.support.clock import ManualClock

QUEUE = MessageQueue("T", "broker-a", 0)
AVG = AllocateAveragely()


class Holder:
    """A member of a group that reads one queue in order; ``is_busy`` while a listener has messages of it."""

    consume_type = ConsumeType.CONSUME_PASSIVELY
    is_broadcasting = False
    is_orderly = True

    def __init__(self, *members: str) -> None:
        self.members = members
        self.is_busy = False
        self.asked: list[str] = []
        self.table: dict[MessageQueue, ProcessQueue] = {}
        self.rounds = Rebalance(self, group="g", client_id="me", table=self.table)

    def subscribed_topics(self):
        return ["T"]

    async def find_queues(self, topic):
        return [QUEUE]

    async def find_members(self, topic):
        return self.members

    async def release(self, held):
        self.asked.append("release")
        return not self.is_busy

    async def lock(self, queues):
        self.asked.append("lock")
        return queues

    def forget_offset(self, queue): ...

    async def start_offset(self, queue):
        return 7

    def begin(self, queue, offset):
        return ProcessQueue(queue, ManualClock(), offset)

    def work_on(self, held): ...

    def queues_changed(self, topic, all_queues, mine): ...

    def rebalance_later(self, delay): ...

    async def lose(self) -> ProcessQueue:
        """Hold the queue, and have it given to another member while the listener runs."""
        await self.rounds.run(AVG)
        held = self.table[QUEUE]
        self.members, self.is_busy = ("another", "me"), True
        await self.rounds.run(AVG)
        self.asked.clear()
        return held


def test_a_queue_that_could_not_be_released_is_taken_again_in_the_round_that_wants_it_back():
    async def scenario():
        holder = Holder("me")
        lost = await holder.lose()
        assert (lost.is_dropped, holder.table) == (True, {QUEUE: lost})
        holder.members, holder.is_busy = ("me",), False
        assert await holder.rounds.run(AVG)
        assert holder.asked == ["release", "lock"]
        assert holder.table[QUEUE] is not lost
        assert not holder.table[QUEUE].is_dropped

    asyncio.run(scenario())


def test_a_queue_that_still_cannot_be_released_is_not_taken_again():
    async def scenario():
        holder = Holder("me")
        lost = await holder.lose()
        holder.members = ("me",)
        assert not await holder.rounds.run(AVG)
        assert (holder.asked, holder.table) == (["release"], {QUEUE: lost})

    asyncio.run(scenario())


def test_a_queue_that_was_released_late_is_released_no_more():
    async def scenario():
        holder = Holder("me")
        await holder.lose()
        holder.is_busy = False
        await holder.rounds.run(AVG)
        await holder.rounds.run(AVG)
        assert (holder.asked, holder.table) == (["release"], {})

    asyncio.run(scenario())


def test_a_queue_whose_release_failed_with_an_error_is_tried_again(monkeypatch):
    async def fail(held):
        raise KeyError("foreseen by nobody")

    async def scenario():
        holder = Holder("me")
        await holder.rounds.run(AVG)
        holder.members = ("another", "me")
        with monkeypatch.context() as patch:
            patch.setattr(holder, "release", fail)
            with pytest.raises(KeyError):
                await holder.rounds.run(AVG)
        holder.members = ("me",)
        assert await holder.rounds.run(AVG)
        assert holder.asked == ["lock", "release", "lock"]

    asyncio.run(scenario())
