import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.allocate import NO_PINS, Pins, newest
from rmqtools.errors import ConfigError
from rmqtools.policy.allocate.pins import LARGEST_JUMP, repaired, why_ignored

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)
PINS = Pins(7, ["192.168.0.6", "10.1.0.0/16"], when_absent="nobody", expires_at=NOON, set_by="ops")
TEXT = (
    '{"expires_at":"2026-08-01T12:00:00+00:00","ips":["192.168.0.6","10.1.0.0/16"],'
    '"set_by":"ops","version":7,"when_absent":"nobody"}'
)
any_pins = st.builds(
    Pins,
    version=st.integers(0, 3),
    ips=st.lists(st.ip_addresses().map(str), max_size=2),
    when_absent=st.sampled_from([None, "nobody", "everybody"]),
    expires_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    set_by=st.text(max_size=3),
    set_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    set_from=st.text(max_size=3),
    repaired_at=st.none() | st.datetimes(timezones=st.just(UTC)),
)


def changed(**values):
    return json.dumps(json.loads(TEXT) | values)


def without(key):
    return json.dumps({name: value for name, value in json.loads(TEXT).items() if name != key})


def test_format_is_json_with_sorted_keys():
    assert PINS.format() == TEXT


@given(pins=any_pins)
def test_any_pins_are_read_back_from_ascii(pins):
    read = Pins.parse(pins.format())
    assert (read, read.set_at, read.set_from) == (pins, pins.set_at, pins.set_from)
    assert pins.format().isascii()


@pytest.mark.parametrize("key", ["when_absent", "expires_at", "set_by"])
def test_optional_keys_may_be_missing(key):
    assert Pins.parse(without(key)).ips == PINS.ips


def test_members_of_older_versions_get_the_keys_they_know_and_no_others_unless_they_are_set():
    signed = Pins(7, PINS.ips, when_absent="nobody", expires_at=NOON, set_by="ops", set_at=NOON, set_from="h")

    assert json.loads(signed.format()) == json.loads(TEXT) | {"set_at": NOON.isoformat(), "set_from": "h"}


@pytest.mark.parametrize(
    ("pins", "why"),
    [
        pytest.param(Pins(2**63 - 1), "version 9223372036854775807 is above 4294967296", id="a-jump"),
        pytest.param(Pins(LARGEST_JUMP), None, id="the-highest"),
        pytest.param(Pins(1, repaired_at=NOON + timedelta(hours=1)), "repaired in the future", id="tomorrow"),
        pytest.param(Pins(1, repaired_at=NOON + timedelta(minutes=4)), None, id="another-clock"),
    ],
)
def test_versions_that_jump_and_repairs_in_the_future_do_not_count(pins, why):
    found = why_ignored(pins, NOON)

    assert found is None if why is None else found and why in found and "group check --repair" in found


def test_repaired_pins_beat_every_copy_written_before_in_members_of_any_age():
    fresh = repaired(PINS, NOON)

    assert newest(fresh, Pins(LARGEST_JUMP, ["10.9.9.9"])) == fresh
    assert (fresh.version, fresh.ips, fresh.set_by) == (8, PINS.ips, "ops")


def test_versions_begin_again_with_a_repair_when_they_have_run_out():
    assert repaired(Pins(LARGEST_JUMP), NOON).version == 1


def test_unknown_keys_of_later_versions_are_ignored():
    assert Pins.parse(changed(reason="load test")) == PINS


@pytest.mark.parametrize(
    "moment", [NOON.astimezone(timezone(timedelta(hours=8))).isoformat(), "2026-08-01T12:00:00Z"]
)
def test_times_of_other_zones_are_the_same_pins(moment):
    assert Pins.parse(changed(expires_at=moment)).format() == TEXT


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "7", "[]", "[[]]", '"text"', "{}", "{", TEXT[:-1], "[" * 60_000, " " * 70_000 + TEXT,
        without("version"), without("ips"),
        changed(version=-1), changed(version="7"), changed(version=7.0), changed(version=True),
        changed(version=2**63), changed(version=None),
        changed(ips="10.0.0.1"), changed(ips=[1]), changed(ips=["host"]), changed(ips=["10.0.0.1/24"]),
        changed(ips=None), changed(ips={"10.0.0.1": 1}),
        changed(when_absent="anybody"), changed(when_absent=[]), changed(set_by=1), changed(set_by=None),
        changed(expires_at="noon"), changed(expires_at=1), changed(expires_at="2026-08-01T12:00:00"),
        changed(expires_at="9999-12-31T23:59:59-10:00"), changed(set_at="noon"), changed(set_at=1),
        changed(set_from=7), changed(repaired_at="2026-08-01T12:00:00"),
    ],
    ids=lambda text: text[:30] + f"...{len(text)}",
)  # fmt: skip
def test_garbled_text_is_refused_and_never_read_as_no_pins(text):
    with pytest.raises(ConfigError):
        Pins.parse(text)


@given(text=st.text())
def test_any_text_gives_pins_or_a_config_error(text):
    with pytest.raises(ConfigError):
        Pins.parse(text)


@pytest.mark.parametrize(
    ("now", "ips"),
    [
        pytest.param(NOON - timedelta(microseconds=1), PINS.ips, id="before"),
        pytest.param(NOON, (), id="at"),
        pytest.param(NOON + timedelta(days=1), (), id="after"),
    ],
)
def test_pins_pin_until_they_expire(now, ips):
    assert PINS.at(now).ips == ips
    assert PINS.at(now).version == PINS.version


def test_pins_without_expiry_stay():
    assert Pins(1, ["10.0.0.1"]).at(datetime.max.replace(tzinfo=UTC)).ips == ("10.0.0.1",)


def test_the_tombstone_pins_nothing():
    assert Pins.cleared(8, set_by="ops") == Pins(8, set_by="ops")


@pytest.mark.parametrize(
    ("copies", "expected"),
    [
        pytest.param([PINS, Pins.cleared(8)], Pins.cleared(8), id="a-tombstone-beats-an-older-pin"),
        pytest.param(
            [Pins(10, ["10.0.0.1"]), Pins(9, ["10.0.0.2"])], Pins(10, ["10.0.0.1"]), id="10-beats-9"
        ),
        pytest.param([NO_PINS, PINS], PINS, id="a-lost-copy-does-not-count"),
        pytest.param([Pins(1, set_by="a"), Pins(1, set_by="b")], Pins(1, set_by="b"), id="the-greater-text"),
        pytest.param([PINS], PINS, id="one"),
    ],
)
def test_newest_is_the_highest_version_then_the_greater_text(copies, expected):
    assert newest(*copies) == newest(*reversed(copies)) == expected


@given(copies=st.lists(any_pins, min_size=1), data=st.data())
def test_all_members_find_the_same_newest(copies, data):
    assert newest(*data.draw(st.permutations(copies))) == newest(*copies)
