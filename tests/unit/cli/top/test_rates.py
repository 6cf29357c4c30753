import pytest

from rmqtools.cli.top.rates import Meter, age_text, bars, short


def test_a_rate_is_the_difference_of_two_readings_per_second():
    meter = Meter()
    for moment, count in ((10.0, 100), (12.0, 300), (13.0, 300)):
        meter.read(moment, {"a": count})

    assert (list(meter.rates), meter.rate) == ([100.0, 0.0], 0.0)


def test_one_reading_and_a_counter_that_went_back_give_no_rate():
    meter = Meter()
    meter.read(1.0, {"a": 50})
    meter.read(2.0, {"a": 10})
    before = meter.rate
    meter.read(3.0, {"a": 15})

    assert (before, meter.rate) == (None, 5.0)


def test_bars_are_scaled_to_the_largest_value_and_end_to_the_right():
    assert bars([0, 1, 2, 4], 6) == "  ▁▃▅█"
    assert bars([9, 0, 0], 2) == "▁▁"
    assert bars([], 3) == "   "


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (0.0, "0"),
        (0.54, "0.5"),
        (87.4, "87"),
        (999, "999"),
        (999.9, "1.0k"),
        (1234, "1.2k"),
        (45_678, "46k"),
        (34_000_000, "34M"),
        (7_000_000_000, "7.0G"),
    ],
)
def test_a_number_takes_at_most_five_characters(value, text):
    assert short(value) == text
    assert len(text) <= 5


def test_a_counter_that_was_missing_makes_no_spike_when_it_is_back():
    meter = Meter()
    for moment, counts in (
        (1.0, {"a": 100, "b": 5000}),
        (2.0, {"a": 110}),
        (3.0, {"a": 120, "b": 9000}),
        (4.0, {"a": 130, "b": 9003}),
    ):
        meter.read(moment, counts)

    assert list(meter.rates) == [10.0, 10.0, 13.0]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (-1, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (172_800, "2d"), (8_640_000, "100d")],
)
def test_an_age_has_at_most_five_characters(seconds, text):
    assert age_text(seconds) == text
