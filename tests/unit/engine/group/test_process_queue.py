"""What is held of a queue, and what of it may be committed."""

import asyncio
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import PullResult, PullStatus
from rmqtools.policy.flow import Cached, CachedByMember
from tests.support.clock import ManualClock
from tests.unit.engine.consumer.push_scene import stored

QUEUE = MessageQueue("T", "broker-a", 0)


def messages(*offsets: int) -> list[MessageExt]:
    return [stored(offset) for offset in offsets]


def holding(offsets: Iterable[int], clock: ManualClock | None = None) -> ProcessQueue:
    held = ProcessQueue(QUEUE, clock or ManualClock())
    held.put(messages(*offsets))
    return held


def consume(held: ProcessQueue, *offsets: int) -> int:
    """Consume messages of a queue whose messages came together, in any order."""
    return held.finish(held._answers[0], messages(*offsets)) if held.count else held.committable


def offsets(found: Iterable[MessageExt]) -> list[int]:
    return [message.queue_offset for message in found]


def test_messages_held_already_are_passed_over():
    held = holding([0, 1])
    held.take(1)
    held.put(messages(0, 1, 2))

    assert (held.count, held.cached_bytes) == (3, 3)


@pytest.mark.parametrize("again", [(3,), (3, 4), (4, 3)])
def test_what_is_consumed_twice_counts_once(again: tuple[int, ...]):
    held = holding([3, 4, 5, 6])
    consume(held, 3, 4)

    assert consume(held, *again) == 5
    assert (held.count, held.cached_bytes) == (2, 2)


def test_the_first_and_the_last_message_of_an_answer_are_not_all_of_it():
    held = holding([3, 4, 5])

    assert consume(held, 3, 5) == 4
    assert (held.count, held.cached_bytes) == (1, 1)


def test_an_answer_that_is_not_decoded_yet_counts_by_its_ends_and_its_bytes():
    coming = PullResult(PullStatus.FOUND, next_begin_offset=8, min_offset=0, max_offset=99, body=b"12345")
    held = holding([1, 2])
    held.next_offset = 3
    empty = holding([])
    empty.next_offset = 3

    assert held.cached() == Cached(count=2, size_bytes=2, span=1)
    assert held.cached(coming) == Cached(count=2 + 5, size_bytes=2 + 5, span=6)
    assert empty.cached(coming) == Cached(count=5, size_bytes=5, span=4)


def test_the_span_reaches_from_the_first_to_the_last_message_held():
    held = holding([10, 11, 40])
    held.take(1)

    assert (held.min_offset, held.max_offset, held.span) == (10, 40, 30)


def test_what_is_taken_is_not_committable_before_its_commit():
    held = holding([1, 2, 3])

    assert offsets(held.take(2)) == [1, 2]
    assert held.committable == 1
    assert held.commit() == 3


def test_what_is_rolled_back_comes_again_in_its_place():
    held = holding([1, 2, 3])
    held.take(2)
    held.put_back([stored(1, times=7), stored(2)])

    again = held.take(3)
    assert offsets(again) == [1, 2, 3]
    assert [message.reconsume_times for message in again] == [7, 0, 0]


def test_what_is_put_back_comes_again_and_what_was_taken_before_it_stays_taken():
    held = holding([1, 2, 3])
    held.take(1)
    held.put_back(held.take(1))

    assert offsets(held.taken) == [1]
    assert offsets(held.take(3)) == [2, 3]


@pytest.mark.parametrize(
    ("name", "seconds"), [("is_pull_expired", 120), ("is_lock_expired", 30)], ids=["fetching", "lock"]
)
def test_fetching_is_thought_dead_after_two_minutes_and_a_lock_lost_after_half_a_one(clock, name, seconds):
    held = holding([], clock)
    held.lock(True)
    clock.advance(seconds)
    assert not getattr(held, name)
    clock.advance(1)
    assert getattr(held, name)


def test_one_that_takes_over_keeps_lock_and_pause():
    held, fresh = holding([]), holding([])
    held.lock(True)
    held.is_paused = True
    fresh.take_over(held)

    assert (fresh.is_locked, fresh.is_paused, fresh.consuming) == (True, True, held.consuming)


@pytest.mark.parametrize("act", [ProcessQueue.drop, lambda held: held.put(messages(1))])
async def test_whoever_waits_for_a_change_wakes(act):
    held = holding([])
    waiting = asyncio.create_task(held.changed())
    await asyncio.sleep(0)
    act(held)
    await asyncio.wait_for(waiting, 5)


class Model:
    """Applies random operations to a ProcessQueue, and checks it against sets."""

    def __init__(self) -> None:
        self.by_member = CachedByMember()
        other = ProcessQueue(MessageQueue("T", "broker-a", 1), ManualClock(), 0, self.by_member)
        other.put(messages(9, 10))
        self.held = ProcessQueue(QUEUE, ManualClock(), 0, self.by_member)
        self.fetched: set[int] = set()
        self.consumed: set[int] = set()
        self.next = 0

    def act(self, kind: str, number: int) -> None:
        getattr(self, kind)(number)
        self.check()

    def put(self, number: int) -> None:
        new = range(self.next, self.next + number, 2)  # every second offset is a gap
        self.held.put(messages(*new))
        self.fetched |= set(new)
        self.next += number

    def remove(self, number: int) -> None:
        for answer in tuple(self.held._answers):
            free = [message for message in answer if message.queue_offset % (number + 1) == 0]
            self.held.finish(answer, free)
            self.consumed |= set(offsets(free))

    def commit(self, number: int) -> None:
        taken = self.held.take(number)
        self.held.commit()
        self.consumed |= set(offsets(taken))

    def roll_back(self, number: int) -> None:
        self.held.take(number)
        self.held.rollback()

    def check(self) -> None:
        waiting = self.fetched - self.consumed
        bodies = sum(len(b"%d" % offset) for offset in waiting)
        assert self.held.committable == min(waiting, default=max(self.fetched, default=-2) + 1)
        assert (self.held.count, self.held.cached_bytes) == (len(waiting), bodies)
        assert self.by_member == CachedByMember(len(waiting) + 2, bodies + 3)  # with the other queue's
        assert offsets(self.held.held) == sorted(waiting)


ACTS = st.tuples(st.sampled_from(["put", "remove", "commit", "roll_back"]), st.integers(1, 6))


@given(st.lists(ACTS, max_size=30))
@example([*[("put", 1)] * 4, ("remove", 1)])  # an answer in the middle is consumed first
def test_no_offset_is_committable_beyond_a_message_not_consumed_and_bytes_are_counted(acts):
    model = Model()
    for kind, number in acts:
        model.act(kind, number)
    model.remove(0)

    assert (model.held.count, model.held.cached_bytes) == (0, 0)


@given(st.lists(ACTS, max_size=30), st.lists(ACTS, max_size=5))
def test_a_queue_that_leaves_counts_for_its_member_no_more_whatever_happens_to_it(before, after):
    model = Model()
    for kind, number in before:
        model.act(kind, number)
    model.held.leave_member()
    for kind, number in after:
        getattr(model, kind)(number)

    assert model.by_member == CachedByMember(2, 3)


def test_a_message_that_stays_keeps_few_of_those_that_came_with_it():
    held = holding(range(100))
    (answer,) = held._answers
    for offset in range(1, 100):
        held.finish(answer, messages(offset))

    assert held.committable == 0
    assert len(answer.messages) <= 2
