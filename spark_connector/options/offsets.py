"""Start and end of a read: parses option text into offsets or times per queue; pure.

The text is ``earliest``, ``latest``, ``group`` or JSON ``{"topic": {"broker-a": {"0": 42, "1": -2}}}``: the
next offset to read per queue; -2 is the queue's earliest, -1 its latest. ``"*": -2`` or ``"*": -1`` stands
for all queues not named at its level: of the broker, of the topic, or all.

A time is milliseconds since 1970, or ISO 8601 such as ``2026-01-31T10:00:00+01:00`` or ``2026-01-31``.
Without a zone, option ``timeZone`` gives it. A number from 1 to 10^11 - 1 is refused: those are seconds.
Source of the form: startingOffsets and endingOffsets of Spark's Kafka source.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Literal, TypeAlias

from rmqtools import MessageQueue
from spark_connector.options.option import LARGEST
from spark_connector.options.queue_json import parse_numbers, parse_values

EARLIEST: Final = -2
LATEST: Final = -1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_BELOW: Final = 10**11  # as seconds the year 5138, as milliseconds March 1973
_REMEDY: Final = "-2 is a queue's earliest, -1 its latest"

OffsetSpec: TypeAlias = Literal["earliest", "latest", "group"] | Mapping[MessageQueue, int]


Instant: TypeAlias = int | datetime
"""Milliseconds since 1970, or a local time whose zone is not known yet."""


@dataclass(frozen=True, slots=True)
class Times:
    """Times in ms since 1970, for all queues or per queue: that of the first message from then on."""

    timestamps_ms: int | Mapping[MessageQueue, int]

    def at(self, queue: MessageQueue) -> int:
        """Return the time of a queue."""
        times = self.timestamps_ms
        return times if isinstance(times, int) else times[queue]


@dataclass(frozen=True, slots=True)
class GivenTimes:
    """Times as given by an option: for all queues, or per queue."""

    instants: Instant | Mapping[MessageQueue, Instant]

    def in_zone(self, zone: tzinfo | None) -> Times:
        """Convert to milliseconds.

        Raises:
            ValueError: a time has no zone, and ``zone`` is None.
        """
        if isinstance(self.instants, Mapping):
            return Times({queue: _in_ms(instant, zone) for queue, instant in self.instants.items()})
        return Times(_in_ms(self.instants, zone))


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a read, and the option that set it."""

    option: str
    spec: OffsetSpec | Times


def parse_offset_spec(text: str) -> OffsetSpec:
    """Parse an offset option.

    Raises:
        ValueError: malformed; the text names the error and, for JSON, its place.
    """
    match text.strip().lower():
        case "earliest" | "latest" | "group" as word:
            return word
    if text.lstrip()[:1] not in ("{", "["):
        raise ValueError("neither earliest, latest, group nor JSON")
    return parse_offsets(text)


def parse_offsets(text: str) -> dict[MessageQueue, int]:
    """Parse the JSON form.

    Raises:
        ValueError: malformed; the text names the error and its place.
    """
    return parse_numbers(text, what="offset", lowest=EARLIEST, remedy=_REMEDY, defaults=(EARLIEST, LATEST))


def parse_time(text: str) -> GivenTimes:
    """Parse a time for all queues.

    Raises:
        ValueError: malformed.
    """
    return GivenTimes(_parse_instant(text.strip()))


def parse_times(text: str) -> GivenTimes:
    """Parse a time per queue.

    Raises:
        ValueError: malformed; the text names the error and its place.
    """
    return GivenTimes(parse_values(text, _parse_json_instant))


def _parse_instant(text: str) -> Instant:
    if re.fullmatch(r"[+-]?\d+", text):
        if (time := int(text)) < 0:
            raise ValueError(f"want 0 or more, got {time}")
        if time > LARGEST:
            raise ValueError(f"want at most {LARGEST}")
        _refuse_seconds(time)
        return time
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("neither milliseconds since 1970 nor a time as 2026-01-31T10:00:00Z") from None
    return parsed if parsed.tzinfo is None else _in_ms(parsed, None)


def _parse_json_instant(value: object, where: str) -> Instant:
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST
    if not is_number and not isinstance(value, str):
        remedy = "want a whole number; milliseconds since 1970, or ISO 8601"
        raise ValueError(f"time {json.dumps(value)} of {where}: {remedy}")
    try:
        return _parse_instant(str(value))
    except ValueError as error:
        raise ValueError(f"time {json.dumps(value)} of {where}: {error}") from None


def _refuse_seconds(time: int) -> None:
    """Refuse a number that is too small for milliseconds; 0 means all messages."""
    if 0 < time < _SECONDS_BELOW:
        day = (_EPOCH + timedelta(milliseconds=time)).date()
        raise ValueError(
            f"{time} milliseconds since 1970 are a time on {day}; if these are seconds, give "
            f"{time * 1000}; a time before 1973 as 1970-01-31T10:00:00Z"
        )


def _in_ms(instant: Instant, zone: tzinfo | None) -> int:
    if isinstance(instant, int):
        return instant
    if instant.tzinfo is None:
        if zone is None:
            raise ValueError(
                f"{instant.isoformat()} has no time zone: add one, as in {instant.isoformat()}Z, or set "
                "option 'timeZone', e.g. to spark.conf.get('spark.sql.session.timeZone')"
            )
        instant = instant.replace(tzinfo=zone)
    return (instant - _EPOCH) // timedelta(milliseconds=1)
