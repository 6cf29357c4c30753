"""The mark of a message that an exact appender has stored: who wrote it, and its position."""

from dataclasses import dataclass

APPEND_MARK = "RMQTOOLS_MARK"
"""Property of every message that an exact appender stores: position, writer and origin, in this order."""

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
    """

    position: int
    writer: str
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.position} {self.writer} {self.origin}"


def parse_mark(text: str | None) -> AppendMark | None:
    """Return the mark of a property's text; None: there is no property, or it is no mark."""
    position, _, rest = (text or "").partition(" ")
    writer, _, origin = rest.partition(" ")
    if not writer or not position.isascii() or not position.isdecimal() or len(position) > 19:
        return None
    return AppendMark(int(position), writer, origin)
