from rmqtools.policy.start_offset import checked_offset


def test_a_queue_begins_at_0_if_a_broker_says_so():
    assert checked_offset(0) == 0
