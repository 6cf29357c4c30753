"""Work of a member that must not grow with queues, topics or messages that it does not concern."""

from rmqtools.engine.consumer.hand_out import HandOut
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.model.queue import MessageQueue
from tests.support.clock import ManualClock
from tests.unit.engine.consumer.push_scene import stored
from tests.unit.engine.group.steps import Steps, steady
from tests.unit.engine.group.test_rebalance import AVG, Scene


class Topics(Scene):
    """A member that holds all 8 queues of each of many topics."""

    is_orderly = False

    def __init__(self, count: int) -> None:
        super().__init__("me")
        self._topics = [f"T{number}" for number in range(count)]

    def topics(self):
        return self._topics

    async def find_queues(self, topic):
        return [MessageQueue(topic, "broker-a", queue_id) for queue_id in range(8)]


async def steps_of_a_round_without_change(topics: int) -> int:
    scene = Topics(topics)
    await scene.rounds.run(AVG)
    assert len(scene.held.pulled) == 8 * topics
    with Steps() as steps:
        assert await scene.rounds.run(AVG)
    return steps.count


async def test_a_round_of_ten_times_the_topics_takes_ten_times_the_steps():
    few, many = await steps_of_a_round_without_change(4), await steps_of_a_round_without_change(40)

    assert many < 11 * few


def hand_out_of(queues: int, messages: int = 2) -> HandOut:
    hand_out = HandOut()
    for queue_id in range(queues):
        held = ProcessQueue(MessageQueue("T", "broker-a", queue_id), ManualClock())
        hand_out.held(held)
        held.put([stored(offset) for offset in range(messages)])
        hand_out.arrived(held)
    return hand_out


def steps_of_a_poll(queues: int) -> int:
    hand_out = hand_out_of(queues)
    hand_out.begin()
    hand_out.take(8)
    with Steps() as steps:
        hand_out.begin()
        assert len(hand_out.take(8)) == 8
    return steps.count


def test_a_poll_of_a_member_with_many_queues_takes_no_more_steps():
    assert steady(steps_of_a_poll, 500) == steady(steps_of_a_poll, 20)


def steps_of_an_answer(held_before: int) -> int:
    held = ProcessQueue(MessageQueue("T", "broker-a", 0), ManualClock())
    for offset in range(held_before):
        held.put([stored(offset)])
    coming = [stored(held_before + number) for number in range(32)]
    with Steps() as steps:
        answer = held.put(coming)
        assert answer is not None
        held.finish(answer, answer.messages)
        held.cached()
    return steps.count


def test_an_answer_takes_the_same_steps_however_many_messages_are_held():
    assert steady(steps_of_an_answer, 10) == steady(steps_of_an_answer, 5_000)
