"""Where a read starts or ends, as option text, and as numbers of queues; pure.

The text is ``earliest``, ``latest``, ``group`` or JSON ``{"topic": {"broker-a": {"0": 42, "1": -2}}}``: the
next offset to read per queue, -2 for its earliest, -1 for its latest.
Source of the form: startingOffsets and endingOffsets of Spark's Kafka source.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rmqtools import MessageQueue
from spark_connector.queue_json import format_numbers, parse_numbers, place, places

EARLIEST: Final = -2
LATEST: Final = -1
_REMEDY: Final = "-2 is a queue's earliest, -1 its latest"

OffsetSpec: TypeAlias = Literal["earliest", "latest", "group"] | Mapping[MessageQueue, int]


@dataclass(frozen=True, slots=True)
class Times:
    """Where queues stood at a time, in ms since 1970: one for all queues, or one for each."""

    timestamps_ms: int | Mapping[MessageQueue, int]

    def at(self, queue: MessageQueue) -> int:
        """The time that counts for a queue."""
        times = self.timestamps_ms
        return times if isinstance(times, int) else times[queue]


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a read, and the option that says so."""

    option: str
    spec: OffsetSpec | Times


def parse_offset_spec(text: str) -> OffsetSpec:
    """Read an offset option.

    Raises:
        ValueError: malformed; says what and, for JSON, where.
    """
    match text.strip().lower():
        case "earliest" | "latest" | "group" as word:
            return word
    if text.lstrip()[:1] not in ("{", "["):
        raise ValueError("neither earliest, latest, group nor JSON")
    return parse_offsets(text)


def parse_offsets(text: str) -> dict[MessageQueue, int]:
    """Read the JSON form.

    Raises:
        ValueError: malformed; says what and where.
    """
    return parse_numbers(text, what="offset", lowest=EARLIEST, remedy=_REMEDY)


def parse_times(text: str) -> Times:
    """Read a time per queue.

    Raises:
        ValueError: malformed; says what and where.
    """
    return Times(parse_numbers(text, what="time", lowest=0, remedy="milliseconds since 1970"))


def format_offsets(offsets: Mapping[MessageQueue, int]) -> str:
    """Write the JSON form, sorted; equal offsets give equal text."""
    return format_numbers(offsets)


def resolve_offsets(
    spec: Literal["earliest", "latest"] | Mapping[MessageQueue, int],
    earliest: Mapping[MessageQueue, int],
    latest: Mapping[MessageQueue, int],
) -> dict[MessageQueue, int]:
    """Turn an option's value into one offset for every queue there is.

    Args:
        spec: what :func:`parse_offset_spec` gave, unless ``group``.
        earliest: the first offset still stored, of every queue.
        latest: the offset the next message gets, of the same queues.

    Raises:
        ValueError: JSON names a queue that does not exist, leaves one out, or goes beyond what is stored.
    """
    if isinstance(spec, str):
        return dict(earliest if spec == "earliest" else latest)
    check_queues(spec, earliest, remedy=_REMEDY)
    chosen = {
        queue: {EARLIEST: earliest[queue], LATEST: latest[queue]}.get(offset, offset)
        for queue, offset in spec.items()
    }
    for queue, offset in chosen.items():
        if not earliest[queue] <= offset <= latest[queue]:
            raise ValueError(
                f"offset {offset} of {place(queue)} is not stored: the queue holds "
                f"{earliest[queue]} to {latest[queue]}; {_REMEDY}"
            )
    return chosen


def check_queues(given: Iterable[MessageQueue], known: Iterable[MessageQueue], *, remedy: str) -> None:
    """Refuse JSON that does not name exactly the queues that are read.

    Raises:
        ValueError: one does not exist, or is left out.
    """
    given, known = set(given), set(known)
    if unknown := given - known:
        raise ValueError(f"{places(unknown)} does not exist among {places(known)}")
    if missing := known - given:
        raise ValueError(f"{places(missing)} is left out: name every queue; {remedy}")
