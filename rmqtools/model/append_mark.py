"""The mark of a message that an exact appender has stored: who wrote it, and its position."""

from dataclasses import dataclass

APPEND_MARK = "RMQTOOLS_MARK"
"""Property of every message that an exact appender stores: position, writer, origin, time."""

EXACT_GROUP_PREFIX = "RMQTOOLS_EXACT-"
"""Begin of the names of groups whose locks and offsets exact appenders use; nobody consumes with them."""

FENCE_TOPIC = "RMQTOOLS_FENCE"
"""Topic of one queue on each broker, to which exact appenders send fence messages; nobody reads them."""


@dataclass(frozen=True, slots=True)
class AppendMark:
    """The content of the property :data:`APPEND_MARK`.

    Attributes:
        position: where the message came from; within a queue and a writer it only rises.
        writer: the name of the writer.
        origin: what the positions count, such as a queue of another cluster; may be empty.
        source_ms: when the origin stored the message, in ms since 1970: another message of the same position
            has another time. None: not known; mirrors of 0.3.0 did not write it.
    """

    position: int
    writer: str
    origin: str = ""
    source_ms: int | None = None

    def __str__(self) -> str:
        time = "" if self.source_ms is None else f"{_BEFORE_TIME}{self.source_ms}"
        return f"{self.position} {self.writer} {self.origin}{time}"


_BEFORE_TIME = "\t"  # no origin has one: a mirror of 0.3.0 sees another origin, and stops


def parse_mark(text: str | None) -> AppendMark | None:
    """Return the mark of a property's text; None: there is no property, or it is no mark."""
    position, _, rest = (text or "").partition(" ")
    writer, _, origin = rest.partition(" ")
    if not writer or not _is_number(position):
        return None
    origin, _, time = origin.partition(_BEFORE_TIME)
    return AppendMark(int(position), writer, origin, int(time) if _is_number(time) else None)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 19
