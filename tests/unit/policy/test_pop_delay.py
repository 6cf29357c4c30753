"""The delay until a failed popped message is delivered again; Java's table is the oracle."""

import pytest

from rmqtools.policy.pop_delay import exhausted_delay, pop_delay

DELAYS = [10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200]


@pytest.mark.parametrize(("times", "expected"), [*enumerate(DELAYS), (16, 7200), (100, 7200)])
def test_every_try_waits_longer_until_two_hours(times, expected):
    assert pop_delay(times) == expected


@pytest.mark.parametrize(("level", "expected"), [(1, 30), (2, 60), (15, 7200), (18, 7200)])
def test_a_level_that_the_listener_sets_counts_instead_of_the_tries(level, expected):
    assert pop_delay(3, level) == expected


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (0, 10),
        (9.9, 10),
        (10, 30),
        (29, 30),
        (30, 60),
        (3599, 3600),
        (3600, 7200),
        (7200, 7200),
        (14400, 7200),
    ],
)
def test_a_message_tried_too_often_waits_for_the_next_delay_above_its_age(age, expected):
    assert exhausted_delay(age) == expected


def test_a_message_tried_too_often_is_given_up_when_it_is_twice_as_old_as_the_longest_delay():
    assert exhausted_delay(14400.1) is None
