"""The value of option ``timeZone``: every zone that Spark's session accepts, and names in any case; pure.

Source of the rule: DateTimeUtils.getZoneId (Spark), ZoneId.of with ZoneId.SHORT_IDS (Java).
"""

import re
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

_MOST: Final = timedelta(hours=18)  # Java's largest offset
_OFFSET: Final = re.compile(
    r"(?:UTC|GMT|UT)?(?P<sign>[+-])"
    r"(?:(?P<hours>\d{1,2})(?::(?P<minutes>\d{1,2})(?::(?P<seconds>\d\d))?)?"
    r"|(?P<hh>\d\d)(?P<mm>\d\d)(?P<ss>\d\d)?)",
    re.ASCII,
)
_SHORT_NAMES: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}


def parse_zone(text: str) -> tzinfo:
    """Parse a time zone: ``Europe/Berlin``, ``UTC``, ``Z``, ``+02:00``, ``GMT+2``, ``PST``.

    Raises:
        ValueError: unknown zone, or an offset of more than 18 hours.
    """
    given = text.strip()
    name = _SHORT_NAMES.get(given.upper(), given)
    if name.upper() in ("Z", "UT"):
        return UTC
    found = _OFFSET.fullmatch(name.upper())
    return _named_zone(name) if found is None else _fixed_zone(found)


def _fixed_zone(found: re.Match[str]) -> tzinfo:
    hours, minutes, seconds = (
        int(found[long] or found[short] or 0)
        for long, short in (("hours", "hh"), ("minutes", "mm"), ("seconds", "ss"))
    )
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if minutes > 59 or seconds > 59 or offset > _MOST:
        raise ValueError("an offset is at most 18:00, its minutes and seconds at most 59")
    return timezone(-offset if found["sign"] == "-" else offset)


def _named_zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    lower = name.lower()
    for known in available_timezones():
        if known.lower() == lower:
            return ZoneInfo(known)
    raise ValueError("there is no such time zone")
