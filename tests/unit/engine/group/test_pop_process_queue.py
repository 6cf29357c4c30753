import pytest

from rmqtools.engine.group.pop_process_queue import PopProcessQueue
from rmqtools.model.queue import MessageQueue
from tests.support.clock import ManualClock


@pytest.mark.parametrize("noted", [PopProcessQueue.popped, PopProcessQueue.note_waiting])
def test_a_queue_expires_two_minutes_after_its_last_sign_of_life(noted):
    clock = ManualClock()
    clock.advance(1000)
    held = PopProcessQueue(MessageQueue("T", "broker-a", 0), clock)
    clock.advance(119)
    noted(held)
    clock.advance(119)
    assert not held.is_pull_expired
    clock.advance(2)
    assert held.is_pull_expired
