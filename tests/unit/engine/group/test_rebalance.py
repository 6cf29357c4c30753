"""Rounds of a member whose queues cannot always be released at once."""

import asyncio

from rmqtools.allocate import AllocateAveragely
from rmqtools.engine.group.hold_and_release import HeldQueues
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.engine.group.rebalance import Rebalance
from rmqtools.model.group import ConsumeType
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.member_list import MemberList
from tests.support.clock import ManualClock
from tests.support.fake import Fake

QUEUE = MessageQueue("T", "broker-a", 0)
AVG = AllocateAveragely()


class Offsets(Fake):
    """A store that notes when it is asked to persist; ``error`` is raised then."""

    def __init__(self, asked: list[str]) -> None:
        self.asked = asked
        self.error: Exception | None = None

    def remove(self, queue): ...

    async def persist(self, queues, *, again=False):
        self.asked.append("persist")
        if self.error is not None:
            raise self.error


class Locks(Fake):
    """Grants every lock, and notes when it is asked."""

    def __init__(self, asked: list[str]) -> None:
        self.asked = asked

    async def lock(self, queues):
        self.asked.append("lock")
        return dict.fromkeys(queues, True)

    async def unlock(self, queues):
        if queues:
            self.asked.append("unlock")


class Scene(Fake):
    """A member of a group that reads one queue in order; its queues and members are scripted."""

    group, client_id, assigned = "g", "me", None
    consume_type = ConsumeType.CONSUME_PASSIVELY
    is_broadcasting, is_orderly = False, True

    def __init__(self, *members: str) -> None:
        self.members = members
        self.asked: list[str] = []
        self.offsets = Offsets(self.asked)
        self.held = HeldQueues(ManualClock(), self.offsets, Locks(self.asked))
        self.subscriptions = self.membership = self
        self.changes: list[object] = []
        self.rounds = Rebalance(self, start_offset=self.start_offset, queues_changed=self.note_change)

    def topics(self):
        return ["T"]

    def wants(self, queue):
        return True

    async def find_queues(self, topic):
        return [QUEUE]

    async def find_members(self, topic, told):
        return MemberList(self.members)

    def note_change(self, topic, every, mine):
        self.changes.append((topic, mine))

    async def start_offset(self, queue):
        return 7

    async def lose(self) -> ProcessQueue:
        """Hold the queue, and have it given to another member while a listener has messages of it."""
        await self.rounds.run(AVG)
        held = self.held.pulled[QUEUE]
        await held.consuming.acquire()
        self.members = ("another", "me")
        await self.rounds.run(AVG)
        self.asked.clear()
        return held


async def test_changes_are_told_once_and_a_round_without_any_tells_nothing():
    scene = Scene("me")
    for members in [("me",), ("me",), ("another", "me"), ("another", "me")]:
        scene.members = members
        await scene.rounds.run(AVG)

    assert scene.changes == [("T", [QUEUE]), ("T", [])]


async def test_a_queue_that_could_not_be_given_up_is_taken_again_in_the_round_that_wants_it_back():
    scene = Scene("me")
    lost = await scene.lose()
    assert (lost.is_dropped, scene.held.pulled) == (True, {QUEUE: lost})
    scene.members = ("me",)
    lost.consuming.release()
    assert await scene.rounds.run(AVG)
    assert scene.asked == ["persist", "unlock", "lock"]
    assert scene.held.pulled[QUEUE] is not lost
    assert not scene.held.pulled[QUEUE].is_dropped


async def test_a_queue_that_still_cannot_be_given_up_is_not_taken_again():
    scene = Scene("me")
    await scene.rounds.run(AVG)
    assert scene.rounds.must_try_again is False
    lost = await scene.lose()
    assert scene.rounds.must_try_again is True
    scene.members = ("me",)
    assert not await scene.rounds.run(AVG)
    assert (scene.asked, scene.held.pulled) == ([], {QUEUE: lost})


async def test_a_queue_that_was_given_up_late_is_given_up_no_more():
    scene = Scene("me")
    (await scene.lose()).consuming.release()
    await scene.rounds.run(AVG)
    await scene.rounds.run(AVG)
    assert (scene.asked, scene.held.pulled) == (["persist", "unlock"], {})


async def test_a_queue_whose_giving_up_failed_with_an_error_is_tried_again(caplog):
    scene = Scene("me")
    await scene.rounds.run(AVG)
    scene.members = ("another", "me")
    scene.offsets.error = KeyError("foreseen by nobody")
    await scene.rounds.run(AVG)
    scene.members, scene.offsets.error = ("me",), None
    assert await scene.rounds.run(AVG)
    assert scene.asked == ["lock", "persist", "persist", "unlock", "lock"]
    assert "foreseen by nobody" in caplog.text


async def test_the_lock_of_a_queue_whose_start_is_unknown_is_released_for_other_members():
    starts = [-1, 7]

    class Unknown(Scene):
        async def start_offset(self, queue):
            return starts.pop(0)

    scene = Unknown("me")
    assert not await scene.rounds.run(AVG)
    assert (scene.asked, scene.held.pulled) == (["lock", "unlock"], {})
    assert await scene.rounds.run(AVG)
    assert scene.asked == ["lock", "unlock", "lock"]


async def test_a_queue_whose_start_is_known_does_not_wait_for_a_broker_that_does_not_answer():
    sick, answers = MessageQueue("T", "stands-still", 0), asyncio.Event()

    class TwoBrokers(Scene):
        async def find_queues(self, topic):
            return [QUEUE, sick]

        async def start_offset(self, queue):
            if queue == sick:
                await answers.wait()
            return 7

    scene = TwoBrokers("me")
    running = asyncio.create_task(scene.rounds.run(AVG))
    await asyncio.sleep(0.1)
    assert set(scene.held.pulled) == {QUEUE}
    answers.set()
    assert await running
    assert set(scene.held.pulled) == {QUEUE, sick}


async def test_a_broker_is_asked_for_the_members_once_in_a_round_whatever_the_topics():
    asked: list[bool] = []

    class Listed(Scene):
        def topics(self):
            return ["T", "U", "V"]

        async def find_members(self, topic, told):
            asked.append("broker-a" not in told)
            told["broker-a"] = ("me",)
            return await super().find_members(topic, told)

    scene = Listed("me")
    for _ in range(2):
        await scene.rounds.run(AVG)
    assert asked == [True, False, False] * 2
