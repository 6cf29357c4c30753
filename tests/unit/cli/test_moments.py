"""Times as commands show and read them: in the zone of this machine, or in UTC."""

import json
import time
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from rmqtools.cli import app
from rmqtools.cli.moments import duration_seconds, moment_ms, moment_text, show_utc, zone_text
from rmqtools.errors import ConfigError

WINTER = datetime(2026, 1, 31, 11, tzinfo=UTC)
LAST_MS = 253_402_300_799_000  # 9999-12-31T23:59:59Z
SUMMER = datetime(2026, 7, 31, 11, tzinfo=UTC)


@pytest.fixture(autouse=True)
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    show_utc(False)
    yield
    show_utc(False)
    monkeypatch.undo()
    time.tzset()


def test_a_time_is_shown_with_the_offset_that_its_zone_had_then():
    assert [moment_text(WINTER), moment_text(SUMMER)] == [
        "2026-01-31 12:00:00+01:00",
        "2026-07-31 13:00:00+02:00",
    ]


def test_a_time_without_an_offset_is_read_in_the_zone_that_times_are_shown_in():
    local = moment_ms("--from", "2026-01-31T12:00")
    show_utc(True)

    assert local == WINTER.timestamp() * 1000
    assert moment_ms("--from", "2026-01-31T11:00") == local


@pytest.mark.parametrize("utc", [False, True])
def test_what_is_shown_can_be_given_to_another_command(utc):
    show_utc(utc)

    assert moment_ms("--from", moment_text(SUMMER)) == SUMMER.timestamp() * 1000


def test_the_zone_has_a_name_for_headings():
    local = zone_text()
    show_utc(True)

    assert (local in ("+01:00", "+02:00"), zone_text()) == (True, "UTC")


@pytest.mark.parametrize("text", ["", "m", "-1m", "1w", "1m30s", "1.h", "inf", "1 h"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ConfigError, match="is no duration"):
        duration_seconds(text)


def test_a_number_without_a_unit_is_no_time_ago_because_it_may_be_an_offset():
    assert moment_ms("--from", "-1.5h", lambda: 10_000_000) == 10_000_000 - 5_400_000
    with pytest.raises(ConfigError, match="--from '-30' is no time"):
        moment_ms("--from", "-30")


def test_a_time_before_the_first_year_of_utc_is_an_error():
    with pytest.raises(ConfigError, match="--from '0001-01-01' is no time"):
        moment_ms("--from", "0001-01-01")


@pytest.mark.parametrize(
    ("options", "variables", "shown"),
    [
        ((), {}, "2023-11-14 23:13:20+01:00"),
        (("--utc",), {}, "2023-11-14 22:13:20 UTC"),
        ((), {"RMQTOOLS_UTC": "1"}, "2023-11-14 22:13:20 UTC"),
    ],
)
def test_every_command_that_speaks_to_a_cluster_has_the_option(cluster, options, variables, shown):
    cluster.create_topic("timed", queues=1, broker_names=["broker-a"])
    cluster.store("timed", b"1", store_timestamp_ms=1_700_000_000_000)
    runner = CliRunner(env={"NAMESRV_ADDR": cluster.name_server, "RMQTOOLS_UTC": None, **variables})

    described = runner.invoke(app, ["topic", "describe", "timed", "--json", *options], catch_exceptions=False)

    assert json.loads(described.stdout)["queues"][0]["last_message"] == shown


def test_a_story_of_the_last_hour_of_utc_is_shown_in_a_zone_that_is_ahead(cluster):
    cluster.create_topic("late", queues=1, broker_names=["broker-a"])
    cluster.store("late", b"1", store_timestamp_ms=LAST_MS, properties={"UNIQ_KEY": "late-1"})
    runner = CliRunner(env={"NAMESRV_ADDR": cluster.name_server, "RMQTOOLS_UTC": None})

    told = runner.invoke(app, ["message", "story", "late-1", "-t", "late"], catch_exceptions=False)

    assert f"{LAST_MS} ms (no time)" in told.stdout


def test_commands_that_speak_to_no_cluster_do_not_have_it():
    assert CliRunner().invoke(app, ["cluster", "status", "--utc"]).exit_code == 2
