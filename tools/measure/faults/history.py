"""Events of a run: one line a request, an answer, a message read, a fault.

A line is a JSON object. ``event`` names its kind, ``at`` are seconds since the run began:

    {"event": "sent", "at": 1.52, "producer": "p0", "sequence": 17}
    {"event": "answered", "at": 1.53, "producer": "p0", "sequence": 17, "outcome": "stored",
     "place": ["broker-a", 3, 1201], "attempts": [["broker-a", "stored", 0.004]]}
    {"event": "read", "at": 1.61, "party": "group", "reader": "r0", "place": ["broker-a", 3, 1201],
     "producer": "p0", "sequence": 17}
    {"event": "holds", "at": 1.70, "reader": "r0", "queues": [["broker-a", 0], ["broker-b", 1]]}
    {"event": "marked", "at": 20.0, "what": "fault"}

A place is broker name, queue id and queue offset. A message read whose body is damaged has the producer "".
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import IO, Any, NamedTuple, Self


class Place(NamedTuple):
    """Place of a stored message."""

    broker_name: str
    queue_id: int
    queue_offset: int


class MessageId(NamedTuple):
    """Identity of a message: its producer, and its number among that producer's."""

    producer: str
    sequence: int


class Attempt(NamedTuple):
    """One attempt of a send: its broker, its outcome (a value of rmqtools.Outcome), its seconds."""

    broker_name: str
    outcome: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Sent:
    """A send began."""

    at: float
    message: MessageId


@dataclass(frozen=True, slots=True)
class Answered:
    """A send ended: ``stored``, ``refused`` (certainly not stored) or ``unknown``."""

    at: float
    message: MessageId
    outcome: str
    place: Place | None
    attempts: tuple[Attempt, ...]
    status: str = "SEND_OK"


@dataclass(frozen=True, slots=True)
class Read:
    """A reader received a message; None: its body is damaged.

    Readers of one party share the work; together they read everything.
    """

    at: float
    party: str
    reader: str
    place: Place
    message: MessageId | None


@dataclass(frozen=True, slots=True)
class Holds:
    """A reader of the group holds these queues from now on: broker name and queue id; none: it has left."""

    at: float
    reader: str
    queues: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Marked:
    """Something happened to the servers: ``fault``, ``healed``, or what a case notes itself."""

    at: float
    what: str


Event = Sent | Answered | Read | Holds | Marked
_KINDS = {kind.__name__.lower(): kind for kind in (Sent, Answered, Read, Holds, Marked)}


def to_line(event: Event) -> str:
    """One event as a line of the file."""
    fields: dict[str, Any] = asdict(event)
    message = fields.pop("message", None)
    if not isinstance(event, Holds | Marked):
        fields["producer"], fields["sequence"] = message or ("", -1)
    return json.dumps({"event": type(event).__name__.lower(), **fields})


def from_line(line: str) -> Event:
    """Return the event that :func:`to_line` wrote."""
    fields = json.loads(line)
    kind = _KINDS[fields.pop("event")]
    if "sequence" in fields:
        message = MessageId(fields.pop("producer"), fields.pop("sequence"))
        fields["message"] = message if message.producer else None
    if fields.get("place") is not None:
        fields["place"] = Place(*fields["place"])
    if "attempts" in fields:
        fields["attempts"] = tuple(Attempt(*attempt) for attempt in fields["attempts"])
    if "queues" in fields:
        fields["queues"] = tuple((broker, queue_id) for broker, queue_id in fields["queues"])
    return kind(**fields)


class History:
    """Keeps the events of one run and writes each into a file. Used from one thread."""

    def __init__(self, file: IO[str], now: Callable[[], float]) -> None:
        self._file = file
        self._now = now
        self._began = now()
        self.events: list[Event] = []

    def at(self) -> float:
        """Seconds since the run began."""
        return round(self._now() - self._began, 4)

    def add(self, event: Event) -> None:
        """Keep one event."""
        self.events.append(event)
        self._file.write(to_line(event) + "\n")

    def mark(self, what: str) -> float:
        """Note that something happened now."""
        at = self.at()
        self.add(Marked(at, what))
        return at

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
