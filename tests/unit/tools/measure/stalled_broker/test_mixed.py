from collections import Counter
from dataclasses import replace

import pytest

from tools.measure.stalled_broker.mixed import Owners, Seen, reordered, unmet
from tools.measure.stalled_broker.scene import EVERY

SOUND = Seen(unowned=0.0, unowned_sick=0.0, twice=0.0, sent=600, received=600, again=0, reorder=0)
FIRST, SECOND = EVERY[:2]


def test_the_longest_time_without_an_owner_and_the_seconds_with_two_are_added_up():
    owners = Owners()
    for at, first, second in ((0.0, 1, 1), (1.0, 0, 1), (3.5, 0, 2), (4.0, 1, 1), (9.0, 0, 1)):
        held = Counter(EVERY)
        held.update({FIRST: first - 1, SECOND: second - 1})
        owners.look(at, held)

    assert (owners.unowned[FIRST], owners.unowned[SECOND], owners.twice) == (2.5, 0.0, 2.5)


@pytest.mark.parametrize(
    ("places", "count"),
    [
        ([(0, 1), (1, 7), (0, 2), (1, 8)], 0),
        ([(0, 1), (0, 2), (0, 1), (0, 3)], 0),
        ([(0, 2), (0, 1), (0, 3)], 1),
    ],
    ids=["in-order", "again", "late"],
)
def test_a_first_delivery_behind_a_later_message_of_its_queue_is_out_of_order(places, count):
    assert reordered(places) == count


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        ({}, []),
        ({"unowned": 21.0}, []),
        ({"unowned": 21.5}, ["21.5 s unowned"]),
        ({"twice": 3.0}, ["3.0 queue-seconds owned twice"]),
        ({"received": 590}, ["590 messages, Java 600"]),
        ({"reorder": 1}, ["1 out of order"]),
    ],
)
def test_groups_with_a_member_of_ours_are_held_to_a_round_and_to_java(ours, words):
    found = unmet({"java, ours": replace(SOUND, **ours), "java, java": SOUND}, orderly=True)

    assert [word in text for word, text in zip(words, found, strict=True)] == [True] * len(words)


def test_where_two_java_members_are_worse_a_group_may_be_so_too():
    assert (
        unmet(
            {"java, ours": replace(SOUND, unowned=70.0), "java, java": replace(SOUND, unowned=69.5)},
            orderly=False,
        )
        == []
    )
