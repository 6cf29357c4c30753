"""Judges a history: what was lost, stored twice, made up, damaged, out of order. Pure: events in, values out.

- **lost**: acknowledged, and a party never read it.
- **copies**: places of a message beyond its first one.
- **unexplained**: places of a message beyond what its attempts explain. An attempt that was answered "stored"
  explains one place, and one whose outcome is unknown too; a refused one and one never sent explain none.
- **redelivered**: read by a party again at the same place.
- **phantom**: read, never sent. **corrupt**: a damaged body, or one place with two different messages.
- **reorder**: acknowledged at a smaller offset than an earlier message of the same producer in that queue; or
  first read by a party after a message with a greater offset of that queue by the same reader.
- **gap**: offsets missing between the first and the last that a party read of a queue.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tools.measure.faults.history import Answered, Attempt, Event, Holds, Marked, MessageId, Place, Read, Sent

_MAY_BE_STORED = ("stored", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Judgement of a history. Counts of messages unless said otherwise; times are seconds."""

    sent: int
    acked: int
    refused: int
    unknown: int
    unanswered: int
    unknown_attempts: int
    lost: tuple[MessageId, ...]
    copies: int
    unexplained: int
    redelivered: int
    phantom: int
    corrupt: int
    reorder: int
    gap: int
    longest_send: float
    longest_gap: float

    @property
    def is_sound(self) -> bool:
        """True if nothing happened that must never happen, whatever the fault."""
        wrong = (self.lost, self.unexplained, self.phantom, self.corrupt, self.reorder, self.gap)
        return not any(wrong) and not self.unanswered

    def line(self) -> str:
        """Return the counts that are no figures, for people."""
        return (
            f"{self.sent} sent: {self.acked} acknowledged, {self.refused} refused, {self.unknown} unknown; "
            f"{self.unknown_attempts} unknown attempts, {self.copies} copies, {self.redelivered} read again; "
            f"longest gap between acks {self.longest_gap:.2f} s"
        )


def check(events: Iterable[Event]) -> Verdict:
    """Judge a whole history."""
    events = list(events)
    answers = [event for event in events if isinstance(event, Answered)]
    reads = [event for event in events if isinstance(event, Read)]
    sent = {event.message: event.at for event in events if isinstance(event, Sent)}
    outcomes = Counter(answer.outcome for answer in answers)
    places = _places(reads)
    return Verdict(
        sent=len(sent),
        acked=outcomes["stored"],
        refused=outcomes["refused"],
        unknown=outcomes["unknown"],
        unanswered=len(sent) - len({answer.message for answer in answers}),
        unknown_attempts=sum(attempt.outcome == "unknown" for a in answers for attempt in a.attempts),
        lost=_lost(answers, reads),
        copies=sum(len(where) - 1 for where in places.values()),
        unexplained=_unexplained(answers, places),
        redelivered=len(reads) - len({(read.party, read.place) for read in reads}),
        phantom=len(places.keys() - sent.keys()),
        corrupt=_corrupt(answers, reads),
        reorder=_acked_out_of_order(answers) + _read_out_of_order(reads),
        gap=_gap(reads),
        longest_send=max((answer.at - sent[answer.message] for answer in answers), default=0.0),
        longest_gap=longest_gap(events),
    )


def longest_gap(events: Iterable[Event], begin: float = 0.0, end: float = float("inf")) -> float:
    """Return the longest time without an acknowledgement, between two or from and to the given times."""
    acked = [at for at in _acks(events) if begin <= at <= end]
    edges = ([begin] if begin else []) + acked + ([end] if end != float("inf") else [])
    return max((later - earlier for earlier, later in pairwise(edges)), default=0.0)


def first_ack(events: Iterable[Event], after: float, broker_name: str | None = None) -> float | None:
    """Seconds from ``after`` to the first acknowledgement of a send, by this broker if one is named."""
    times = (at - after for at in _acks(events, broker_name) if at >= after)
    return min(times, default=None)


def first_read(events: Iterable[Event], after: float, broker_name: str) -> float | None:
    """Seconds from ``after`` to the first message that a group read from a broker."""
    times = (
        event.at - after
        for event in events
        if isinstance(event, Read)
        and event.party == "group"
        and event.at >= after
        and event.place.broker_name == broker_name
    )
    return min(times, default=None)


def longest_unowned(events: Iterable[Event], sick: Collection[str]) -> float | None:
    """Return the longest time in which no reader held a queue of a broker that is not ``sick``.

    It counts from the first owner of each queue to the mark "stopped"; None: there is no such queue.
    """
    owners: dict[tuple[str, int], set[str]] = {}
    free_since: dict[tuple[str, int], float] = {}
    longest = 0.0
    for event in events:
        if isinstance(event, Holds):
            for queue in {*owners, *(each for each in event.queues if each[0] not in sick)}:
                held = owners.setdefault(queue, set())
                (held.add if queue in event.queues else held.discard)(event.reader)
                if not held:
                    free_since.setdefault(queue, event.at)
                elif (since := free_since.pop(queue, None)) is not None:
                    longest = max(longest, event.at - since)
        elif isinstance(event, Marked) and event.what == "stopped":
            still_free = (event.at - since for since in free_since.values())
            return max([longest, *still_free]) if owners else None
    raise LookupError("nothing is marked 'stopped'")


def attempts_on(
    events: Iterable[Event], broker_name: str, begin: float, end: float = float("inf")
) -> list[Attempt]:
    """Return the attempts on a broker of the sends answered in a time, in the order of the answers."""
    return [
        attempt
        for event in answers_in(events, begin, end)
        for attempt in event.attempts
        if attempt.broker_name == broker_name
    ]


def answers_in(events: Iterable[Event], begin: float, end: float) -> list[Answered]:
    """Return the answers that came in a time."""
    return [event for event in events if isinstance(event, Answered) and begin <= event.at <= end]


def marked(events: Iterable[Event], what: str) -> float:
    """Return when something was marked.

    Raises:
        LookupError: it never was.
    """
    for event in events:
        if isinstance(event, Marked) and event.what == what:
            return event.at
    raise LookupError(f"nothing is marked {what!r}")


def _acks(events: Iterable[Event], broker_name: str | None = None) -> list[float]:
    return [
        event.at
        for event in events
        if isinstance(event, Answered)
        and event.place is not None
        and broker_name in (None, event.place.broker_name)
    ]


def _places(reads: Sequence[Read]) -> dict[MessageId, set[Place]]:
    places: dict[MessageId, set[Place]] = defaultdict(set)
    for read in reads:
        if read.message is not None:
            places[read.message].add(read.place)
    return places


def _lost(answers: Sequence[Answered], reads: Sequence[Read]) -> tuple[MessageId, ...]:
    acked = {answer.message for answer in answers if answer.outcome == "stored"}
    parties = {read.party for read in reads} or {"nobody"}
    seen = {(read.party, read.message) for read in reads}
    return tuple(sorted(m for m in acked if any((party, m) not in seen for party in parties)))


def _unexplained(answers: Sequence[Answered], places: dict[MessageId, set[Place]]) -> int:
    explained: Counter[MessageId] = Counter()
    for answer in answers:
        explained[answer.message] += sum(a.outcome in _MAY_BE_STORED for a in answer.attempts)
    answered = {answer.message for answer in answers}
    return sum(
        max(0, len(where) - explained[message]) for message, where in places.items() if message in answered
    )


def _corrupt(answers: Sequence[Answered], reads: Sequence[Read]) -> int:
    contents: dict[Place, set[MessageId]] = defaultdict(set)
    for answer in answers:
        if answer.place is not None:
            contents[answer.place].add(answer.message)
    for read in reads:
        if read.message is not None:
            contents[read.place].add(read.message)
    damaged = {read.place for read in reads if read.message is None}
    return len(damaged) + sum(len(messages) > 1 for messages in contents.values())


def _acked_out_of_order(answers: Sequence[Answered]) -> int:
    latest: dict[tuple[str, str, int], int] = {}
    wrong = 0
    for answer in sorted(answers, key=lambda answer: answer.message):
        if answer.place is not None:
            line = (answer.message.producer, *answer.place[:2])
            wrong += answer.place.queue_offset <= latest.get(line, -1)
            latest[line] = max(latest.get(line, -1), answer.place.queue_offset)
    return wrong


def _read_out_of_order(reads: Sequence[Read]) -> int:
    latest: dict[tuple[str, str, int], int] = {}
    known: set[tuple[str, Place]] = set()
    wrong = 0
    for read in reads:
        line, offset = (read.reader, *read.place[:2]), read.place.queue_offset
        wrong += (read.party, read.place) not in known and offset < latest.get(line, -1)
        known.add((read.party, read.place))
        latest[line] = max(latest.get(line, -1), offset)
    return wrong


def _gap(reads: Sequence[Read]) -> int:
    offsets: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for read in reads:
        offsets[(read.party, *read.place[:2])].add(read.place.queue_offset)
    return sum(max(found) + 1 - min(found) - len(found) for found in offsets.values())
