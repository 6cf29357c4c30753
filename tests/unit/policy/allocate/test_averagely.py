from rmqtools.allocate import AllocateAveragely, AllocateAveragelyByCircle
from tests.unit.policy.allocate.groups import show_shares


def test_nine_queues_of_three_brokers_among_four_members_in_blocks():
    assert show_shares(AllocateAveragely()) == ["a0 a1 a2", "b0 b1", "b2 c0", "c1 c2"]


def test_nine_queues_of_three_brokers_among_four_members_in_turn():
    assert show_shares(AllocateAveragelyByCircle()) == ["a0 b1 c2", "a1 b2", "a2 c0", "b0 c1"]


def test_more_members_than_queues_leave_the_last_ones_without():
    members = [f"m{number:02}" for number in range(11)]

    for strategy in (AllocateAveragely(), AllocateAveragelyByCircle()):
        assert show_shares(strategy, members) == [
            "a0",
            "a1",
            "a2",
            "b0",
            "b1",
            "b2",
            "c0",
            "c1",
            "c2",
            "",
            "",
        ]
