"""Rates over the last minute and the last hour."""

import pytest

from rmqtools.model.running_info import ConsumeStatus
from rmqtools.policy.consume_rates import ConsumeRates


def test_a_topic_of_which_nothing_is_known_has_no_rates():
    assert ConsumeRates(0.0).status("t", 100.0) == ConsumeStatus()


def test_rates_of_the_first_seconds_are_of_the_time_since_the_start():
    rates = ConsumeRates(100.0)
    rates.consumed("t", 103.0, succeeded=8, failed=2, seconds=0.5)
    rates.pulled("t", 104.0, count=10, seconds=0.25)

    status = rates.status("t", 104.0)

    assert status.consume_ok_tps == pytest.approx(2.0)
    assert status.consume_failed_tps == pytest.approx(0.5)
    assert status.pull_tps == pytest.approx(2.5)
    assert (status.consume_rt, status.pull_rt, status.consume_failed_msgs) == (500.0, 250.0, 2)


def test_a_steady_stream_has_its_own_rate_whenever_it_is_looked_at():
    rates = ConsumeRates(0.0)
    for second in range(1, 200):
        rates.consumed("t", float(second), succeeded=7, failed=0, seconds=0.01)

        assert rates.status("t", float(second)).consume_ok_tps == pytest.approx(7.0, rel=0.16)


def test_what_is_older_than_a_minute_counts_no_more_but_for_the_hours_figures():
    rates = ConsumeRates(0.0)
    rates.consumed("t", 5.0, succeeded=1, failed=3, seconds=0.2)
    rates.pulled("t", 5.0, count=4, seconds=0.1)

    status = rates.status("t", 70.0)

    assert (status.consume_ok_tps, status.consume_failed_tps, status.pull_tps, status.pull_rt) == (0, 0, 0, 0)
    assert (status.consume_rt, status.consume_failed_msgs) == (200.0, 3)


def test_what_is_older_than_an_hour_is_forgotten():
    rates = ConsumeRates(0.0)
    rates.consumed("t", 5.0, succeeded=1, failed=3, seconds=0.2)

    assert rates.status("t", 3611.0) == ConsumeStatus()


def test_times_are_means_over_calls():
    rates = ConsumeRates(0.0)
    rates.consumed("t", 1.0, succeeded=1, failed=0, seconds=0.1)
    rates.consumed("t", 2.0, succeeded=1, failed=0, seconds=0.3)

    assert rates.status("t", 2.0).consume_rt == pytest.approx(200.0)


def test_topics_have_rates_of_their_own():
    rates = ConsumeRates(0.0)
    rates.consumed("a", 1.0, succeeded=5, failed=0, seconds=0.1)

    assert rates.status("b", 2.0) == ConsumeStatus()
