"""Time zones as text."""

from datetime import UTC, datetime

import pytest

from spark_connector.options.time_zone import parse_zone

SUMMER = datetime(2026, 7, 1)


def hours_of(text):
    local = SUMMER.replace(tzinfo=parse_zone(text))
    return (SUMMER.replace(tzinfo=UTC) - local).total_seconds() / 3600


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        pytest.param("UTC", 0, id="utc"),
        pytest.param("Z", 0, id="z"),
        pytest.param("UT", 0, id="ut"),
        pytest.param("GMT0", 0, id="gmt0"),
        pytest.param("+02:00", 2, id="offset"),
        pytest.param("-05:30", -5.5, id="offset-to-the-west"),
        pytest.param("+2", 2, id="hours"),
        pytest.param("+2:00", 2, id="one-digit-of-hours"),
        pytest.param("-02:3", -2.05, id="one-digit-of-minutes"),
        pytest.param("+0230", 2.5, id="without-colon"),
        pytest.param("+02:30:36", 2.51, id="seconds"),
        pytest.param("+023036", 2.51, id="seconds-without-colon"),
        pytest.param("+18:00", 18, id="the-largest"),
        pytest.param("GMT+2", 2, id="gmt-and-hours"),
        pytest.param("UTC+02:00", 2, id="utc-and-offset"),
        pytest.param("UT-2", -2, id="ut-and-hours"),
        pytest.param("Etc/GMT-2", 2, id="posix-sign"),
        pytest.param("Asia/Tokyo", 9, id="region"),
        pytest.param("PST", -7, id="short-name-with-summer-time"),
        pytest.param("EST", -5, id="short-name-without-summer-time"),
        pytest.param("BST", 6, id="short-name-as-java-means-it"),
        pytest.param(" europe/berlin ", 2, id="region-in-lower-case"),
        pytest.param("EUROPE/BERLIN", 2, id="region-in-upper-case"),
        pytest.param("utc+2", 2, id="utc-in-lower-case"),
        pytest.param("z", 0, id="z-in-lower-case"),
        pytest.param("pst", -7, id="short-name-in-lower-case"),
    ],
)
def test_zones_are_those_of_sparks_session_in_any_case(text, hours):
    assert hours_of(text) == hours


@pytest.mark.parametrize("text", ["Europe/Atlantis", "", "2", "EDT", "+100", "Z+2", "+2:000", "+2:3:4"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="there is no such time zone"):
        parse_zone(text)


@pytest.mark.parametrize("text", ["+19:00", "-18:01", "+02:60", "UTC+18:30", "+02:00:60"])
def test_offsets_beyond_the_limit_are_refused(text):
    with pytest.raises(ValueError, match="an offset is at most 18:00, its minutes and seconds at most 59"):
        parse_zone(text)
