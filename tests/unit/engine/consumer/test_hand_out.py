"""Messages between their queues and the polls that return them."""

from rmqtools import MessageQueue
from rmqtools.engine.consumer.hand_out import HandOut
from rmqtools.engine.group.process_queue import ProcessQueue
from tests.support.clock import ManualClock
from tests.unit.engine.consumer.push_scene import stored

QUEUE = MessageQueue("orders", "broker-a", 0)


async def test_a_queue_given_up_counts_as_consumed_up_to_the_last_poll_of_what_was_borrowed():
    held, hand_out = ProcessQueue(QUEUE, ManualClock(), 0), HandOut()
    held.put([stored(offset) for offset in range(100)])
    hand_out.arrived(held)
    hand_out.begin()
    assert hand_out.make_ready(10, ahead=100)
    for number in range(4):
        assert len(hand_out.ready.pop(number)) == 10

    assert (hand_out.consumed(held), hand_out.handed_out(held)) == (30, 40)
    hand_out.forget(held)
    assert not hand_out.ready


class CountingQueue(ProcessQueue):
    """Counts how often messages leave it."""

    departures = 0

    def consume(self, count: int) -> None:
        self.departures += 1
        super().consume(count)


async def test_messages_taken_one_by_one_leave_their_queues_together():
    queues = [
        CountingQueue(MessageQueue("orders", "broker-a", number), ManualClock(), 0) for number in (0, 1)
    ]
    hand_out = HandOut()
    for begin, held in zip((0, 1000), queues, strict=True):
        held.put([stored(offset) for offset in range(begin, begin + 100)])
        hand_out.arrived(held)
    hand_out.make_ready(1, ahead=128)
    taken = [hand_out.ready.pop(number)[0] for number in sorted(hand_out.ready)[:70]]
    hand_out.note_taken()

    assert [message.queue_offset for message in taken] == [*range(32), *range(1000, 1032), *range(32, 38)]
    assert [(held.departures, held.committable) for held in queues] == [(1, 38), (1, 1032)]
    assert hand_out.consumed(queues[0]) == 37  # the last one may not be consumed yet
    assert hand_out.consumed(queues[1]) == 1032


def filled(hand_out: HandOut, *queue_ids: int, count: int = 10) -> list[ProcessQueue]:
    queues = [ProcessQueue(MessageQueue("orders", "broker-a", one), ManualClock(), 0) for one in queue_ids]
    for held in queues:
        held.put([stored(offset) for offset in range(count)])
        hand_out.arrived(held)
    return queues


async def test_many_queues_that_hand_out_nothing_do_not_hide_the_next_one():
    hand_out = HandOut()
    silent = filled(hand_out, *range(30))
    for held in silent[:10]:
        held.is_paused = True
    for held in silent[10:20]:
        held.drop()
    for held in silent[20:]:
        held.consume(10)
    filled(hand_out, 30)

    assert hand_out.make_ready(1, ahead=256)
    assert len(hand_out.ready) == 10
