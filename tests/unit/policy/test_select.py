from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rmqtools.model.queue import MessageQueue
from rmqtools.policy.select import QueueIndex, select_avoiding, select_next

QUEUES = [MessageQueue("T", broker, queue_id) for broker in "ab" for queue_id in range(4)]


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_full_turn_uses_every_queue_once_wherever_it_starts(start):
    index = QueueIndex(start)
    turn = Counter(select_next(QUEUES, index) for _ in QUEUES)

    assert start > 2**31 - 1 - len(QUEUES) or set(turn.values()) == {
        1
    }  # the counter's own wrap may repeat one


@given(st.integers(-(2**31), 2**31 - 1), st.sampled_from("ab"))
def test_the_broker_that_failed_last_is_avoided(start, failed):
    assert select_avoiding(QUEUES, QueueIndex(start), failed).broker_name != failed


def test_with_all_queues_on_the_broker_that_failed_one_of_them_is_used():
    alone = QUEUES[:4]

    assert select_avoiding(alone, QueueIndex(0), "a") in alone
