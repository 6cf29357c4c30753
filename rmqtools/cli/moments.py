"""Moments and durations as users write and read them: ``2026-01-31T12:00``, ``-30m``, ``90s``.

Times are shown in the zone of this machine with its offset, and read so if they have none; with ``--utc`` in
UTC. What a command shows can be given to another.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import typer

from rmqtools.clock import SYSTEM_CLOCK, as_time
from rmqtools.errors import ConfigError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", re.ASCII)
_SECONDS = {None: 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


_shown = {"utc": False}  # of this run; threads of a command read it too


def show_utc(wanted: bool) -> bool:
    """Show and read times of this run in UTC, or in the zone of this machine."""
    _shown["utc"] = wanted
    return wanted


def zoned(moment: datetime) -> datetime:
    """Return a moment in the zone that times are shown in."""
    return moment.astimezone(UTC if _shown["utc"] else None)


def zone_text() -> str:
    """Return the zone that times are shown in now: ``UTC`` or ``+02:00``."""
    return "UTC" if _shown["utc"] else zoned(as_time(SYSTEM_CLOCK.now_ms())).isoformat()[-6:]


def moment_text(moment: datetime) -> str:
    """Return a moment as all commands show it: ``2026-01-31 12:00:00+02:00``, or ``... UTC``."""
    text = zoned(moment).isoformat(sep=" ", timespec="seconds")
    return f"{text.removesuffix('+00:00')} UTC" if _shown["utc"] else text


def clock_text(moment: datetime) -> str:
    """Return a moment's time of day as all commands show it: ``12:00:00+02:00``, or ``12:00:00 UTC``."""
    return moment_text(moment)[len("2026-01-31 ") :]


def duration_option(about: str, *, name: str | None = None, least: float = 0.0) -> Any:
    """Return the declaration of an option that takes a duration; its value is seconds.

    ``name``: that of the option, if it is not its parameter's. ``least``: the shortest that is accepted.
    """

    def parse(given: str | float) -> float:
        try:
            seconds = duration_seconds(str(given))
        except ConfigError as error:
            raise typer.BadParameter(str(error)) from error
        if seconds < least:
            raise typer.BadParameter(f"{given!r} is too short: want {least:g}s or more")
        return seconds

    return typer.Option(*filter(None, [name]), parser=parse, metavar="DURATION", help=about)


def duration_seconds(text: str) -> float:
    """Parse ``250ms``, ``90s``, ``30m``, ``2h``, ``1d``, ``1.5h``; a number alone is seconds.

    Raises:
        ConfigError: another form, or longer than a time can be.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{text!r} is no duration: want e.g. 250ms, 90s, 30m, 2h or 1d")
    try:
        return timedelta(seconds=float(found[1]) * _SECONDS[found[2]]).total_seconds()
    except (OverflowError, ValueError) as error:  # the number is infinite, or has thousands of digits
        raise ConfigError(f"{text[:40]!r} is too long a time: give less") from error


def moment_ms(option: str, text: str, now_ms: Callable[[], int] = SYSTEM_CLOCK.now_ms) -> int:
    """Parse a moment as milliseconds since 1970: ISO 8601, with or without an offset, or ``-30m`` (ago).

    ``now_ms``: the clock that "ago" goes by: that of the machine that has written the times to compare.

    Raises:
        ConfigError: another form.
    """
    try:
        if text.startswith("-") and text[-1].isalpha():  # a number alone may be meant as an offset
            return now_ms() - int(duration_seconds(text[1:]) * 1000)
        moment = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
        return int(_with_zone(moment).timestamp() * 1000)
    except ConfigError as error:
        raise ConfigError(f"{option} {error}") from error
    except (ValueError, OverflowError) as error:  # OverflowError: the year 1 or 9999, in another zone
        raise ConfigError(
            f"{option} {text!r} is no time: want e.g. 2026-01-31T12:00, 2026-01-31T12:00+02:00, or -30m"
        ) from error


def _with_zone(moment: datetime) -> datetime:
    if moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=UTC) if _shown["utc"] else moment.astimezone()
