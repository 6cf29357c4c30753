"""Moments and durations as users write them: ``2026-01-31T12:00``, ``-30m``, ``90s``."""

import re
from datetime import UTC, datetime, timedelta

from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import ConfigError

_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def duration_seconds(option: str, text: str) -> float:
    """Parse ``250ms``, ``90s``, ``30m``, ``2h``, ``1d``.

    Raises:
        ConfigError: another form, or longer than a time can be.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{option} {text!r} is no duration: want e.g. 250ms, 90s, 30m, 2h or 1d")
    try:
        return timedelta(seconds=int(found[1]) * _SECONDS[found[2]]).total_seconds()
    except (OverflowError, ValueError) as error:  # ValueError: the number has thousands of digits
        raise ConfigError(f"{option} {text[:40]!r} is too long a time: give less") from error


def moment_ms(option: str, text: str) -> int:
    """Parse a moment as milliseconds since 1970: ISO 8601 (UTC unless it has an offset), or ``-30m`` (ago).

    Raises:
        ConfigError: another form.
    """
    if text.startswith("-"):
        return SYSTEM_CLOCK.now_ms() - int(duration_seconds(option, text[1:]) * 1000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(
            f"{option} {text!r} is no time: want e.g. 2026-01-31T12:00, 2026-01-31T12:00+02:00, or -30m"
        ) from error
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)
