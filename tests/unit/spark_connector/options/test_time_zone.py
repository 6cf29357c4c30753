"""Time zones as text."""

from datetime import UTC, datetime

import pytest

from spark_connector.options.time_zone import parse_zone

SUMMER = datetime(2026, 7, 1)


def hours_of(text):
    local = SUMMER.replace(tzinfo=parse_zone(text))
    return (SUMMER.replace(tzinfo=UTC) - local).total_seconds() / 3600


ZONES = [  # hours to the east, and the texts that mean them
    (0, ["UTC", "Z", "z", "UT", "GMT0"]),
    (2, ["+02:00", "+2", "+2:00", "GMT+2", "UTC+02:00", "utc+2", "Etc/GMT-2"]),
    (2, [" europe/berlin ", "EUROPE/BERLIN"]),
    (-2, ["UT-2"]),
    (2.5, ["+0230"]),
    (-5.5, ["-05:30"]),
    (-2.05, ["-02:3"]),
    (2.51, ["+02:30:36", "+023036"]),
    (18, ["+18:00"]),
    (9, ["Asia/Tokyo"]),
    (-7, ["PST", "pst"]),  # with summer time
    (-5, ["EST"]),  # without
    (6, ["BST"]),  # Java's, not Britain's
]


@pytest.mark.parametrize(("hours", "text"), [(hours, text) for hours, texts in ZONES for text in texts])
def test_zones_are_those_of_sparks_session_in_any_case(hours, text):
    assert hours_of(text) == hours


@pytest.mark.parametrize("text", ["Europe/Atlantis", "", "2", "EDT", "+100", "Z+2", "+2:000", "+2:3:4"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="there is no such time zone"):
        parse_zone(text)


@pytest.mark.parametrize("text", ["+19:00", "-18:01", "+02:60", "UTC+18:30", "+02:00:60"])
def test_offsets_beyond_the_limit_are_refused(text):
    with pytest.raises(ValueError, match="an offset is at most 18:00, its minutes and seconds at most 59"):
        parse_zone(text)
