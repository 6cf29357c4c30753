"""In which order a queue is given up, moved and closed."""

import asyncio

from rmqtools.engine.group.hold_and_release import HeldQueues
from rmqtools.model.queue import MessageQueue
from tests.support.clock import ManualClock
from tests.support.fake import Fake
from tests.unit.engine.consumer.push_scene import idle

QUEUE, OTHER = (MessageQueue("T", "broker-a", number) for number in range(2))


class Events(list[str], Fake):
    """Stands in for stores of offsets and locks: records the calls; ``go_on`` lets a persist end."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.asked: list[MessageQueue] = []

    def remove(self, queue) -> None:
        self.append("remove")

    async def persist(self, queues, *, again=False) -> None:
        await self.go_on.wait()
        self.append("persist again" if again else "persist")

    async def lock(self, queues):
        self.asked += queues
        return dict.fromkeys(queues, True)

    async def unlock(self, queues) -> None:
        self.append("unlock")

    async def unlock_all(self) -> None:
        self.append("unlock all")


def holding(events: Events, *, in_order: bool = False) -> HeldQueues:
    held = HeldQueues(ManualClock(), events, events if in_order else None)
    held.on_leave(lambda queue: events.append("note"))
    held.hold(QUEUE, 5)
    return held


async def test_a_queue_is_given_up_in_one_order_and_is_in_the_table_until_that_is_done():
    events = Events()
    events.go_on.clear()
    held = holding(events, in_order=True)
    queue = held.pulled[QUEUE]
    giving_up = asyncio.create_task(held.give_up([queue]))
    await idle()
    assert (queue.is_dropped, held.is_leaving(queue), held.holds(queue)) == (True, True, True)
    assert held.queues() == set()
    events.go_on.set()
    await giving_up
    assert (events, held.pulled) == (["note", "persist", "remove", "unlock"], {})


async def test_a_lock_is_renewed_until_its_queue_is_given_up_and_not_while_it_is():
    events = Events()
    held = holding(events, in_order=True)
    queue = held.pulled[QUEUE]
    async with queue.consuming:
        await held.give_up([queue])
    assert held.has_kept
    await held.renew_locks()
    assert events.asked == [QUEUE]

    events.go_on.clear()
    giving_up = asyncio.create_task(held.give_up([queue]))
    await idle()
    await held.renew_locks()
    events.go_on.set()
    await giving_up

    assert events.asked == [QUEUE]


async def test_two_who_give_a_queue_up_at_the_same_time_wait_for_one_run():
    events = Events()
    held = holding(events)
    queue = held.pulled[QUEUE]
    held.begin_to_give_up([queue])
    await asyncio.gather(held.give_up([queue]), held.give_up([queue]))
    assert events == ["note", "persist", "remove"]


async def test_a_caller_that_is_cancelled_does_not_keep_a_queue_from_being_given_up():
    events = Events()
    events.go_on.clear()
    held = holding(events)
    giving_up = asyncio.create_task(held.give_up(list(held.pulled.values())))
    await idle()
    giving_up.cancel()
    await idle()
    events.go_on.set()
    await held.close()
    assert (events[:3], held.pulled) == (["note", "persist", "remove"], {})


async def test_closing_gives_up_what_a_listener_still_has_and_stores_all_once_more():
    events = Events()
    held = holding(events, in_order=True)
    held.hold_popped(OTHER)
    async with held.pulled[QUEUE].consuming:
        await held.close()
    assert events == ["note", "persist again", "remove", "unlock", "unlock all"]
    assert (held.pulled, held.popped) == ({}, {})
