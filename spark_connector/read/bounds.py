"""Resolves the start or end of a read into one offset per queue; pure.

Offsets that are not stored become losses; :mod:`spark_connector.read.loss` defines how they are handled.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError
from spark_connector.options.offsets import EARLIEST, LATEST, Times
from spark_connector.options.queue_json import default_of, is_named, places
from spark_connector.read.loss import Loss, find_missing, find_outside, nearest_stored
from spark_connector.read.stored import Stored

Offsets = Mapping[MessageQueue, int]
_REMEDY: Final = '-2 is a queue\'s earliest, -1 its latest, "*": -2 stands for all others'
TIMES_REMEDY: Final = "milliseconds since 1970"


@dataclass(frozen=True, slots=True)
class Resolved:
    """An offset for every queue, limited to what is stored, and the resulting losses."""

    offsets: dict[MessageQueue, int]
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True)
class Ends:
    """The end of a stream, per queue; a queue without an end is not read.

    Attributes:
        offsets: the end of each queue; the queue may not have as many messages yet.
        is_final: whether the ends can no longer change.
    """

    offsets: Offsets
    is_final: bool

    def are_stored(self, stored: Stored) -> bool:
        """Return whether the ends can no longer change and all messages before them are stored."""
        return self.is_final and all(at <= stored.latest.get(queue, 0) for queue, at in self.offsets.items())


def resolve_stream_end(spec: Literal["earliest", "latest"] | Offsets, stored: Stored) -> Ends:
    """Resolve the ending offsets of a stream. They may lie beyond what is stored now.

    They are final once any queue exists.

    Raises:
        ConfigError: JSON leaves a queue out.
    """
    if isinstance(spec, str):
        return Ends(stored.earliest if spec == "earliest" else stored.latest, is_final=bool(stored.latest))
    named = with_defaults(spec, stored.earliest)
    check_complete(named, stored.earliest, remedy=_REMEDY)
    ends = {EARLIEST: stored.earliest, LATEST: stored.latest}
    offsets = {queue: ends[at].get(queue, 0) if at in ends else at for queue, at in named.items()}
    return Ends(offsets, is_final=bool(stored.latest))


def resolve_offsets(spec: Literal["earliest", "latest"] | Offsets, stored: Stored) -> Resolved:
    """Resolve words, or one offset per queue.

    Raises:
        ConfigError: JSON leaves a queue out.
    """
    if isinstance(spec, str):
        return Resolved(dict(stored.earliest if spec == "earliest" else stored.latest))
    named = with_defaults(spec, stored.earliest)
    check_complete(named, stored.earliest, remedy=_REMEDY)
    ends = {EARLIEST: stored.earliest, LATEST: stored.latest}
    chosen = {
        queue: ends[offset].get(queue, 0) if offset in ends else offset for queue, offset in named.items()
    }
    return _inside(chosen, stored, holder="offset")


def with_defaults(spec: Offsets, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
    """Return the offsets of the named queues, and of those ``queues`` that a ``"*"`` stands for."""
    others = {queue: default_of(queue, spec) for queue in queues if queue not in spec}
    named = {queue: offset for queue, offset in spec.items() if is_named(queue)}
    return named | {queue: offset for queue, offset in others.items() if offset is not None}


def resolve_group(
    offsets: Mapping[MessageQueue, int | None], stored: Stored, *, group: str, fallback: str
) -> Resolved:
    """Resolve the offsets of a consumer group.

    Args:
        offsets: of every queue; None: the group has none.
        stored: offsets stored in the queues.
        group: its name, for errors.
        fallback: ``earliest``, ``latest`` or ``error``, for queues without an offset.

    Raises:
        ConfigError: the group has no offset for a queue, and the fallback is ``error``.
    """
    missing = [queue for queue, offset in offsets.items() if offset is None]
    if missing and fallback == "error":
        raise ConfigError(
            f"group {group!r} has no offset for {places(missing)}: set groupOffsetFallback=earliest or "
            "latest, or let the group consume first"
        )
    known = {queue: offset for queue, offset in offsets.items() if offset is not None}
    others = stored.earliest if fallback == "earliest" else stored.latest
    resolved = _inside(known, stored, holder=f"group {group!r}: offset")
    return Resolved(resolved.offsets | {queue: others[queue] for queue in missing}, resolved.losses)


def resolve_times(
    times: Times, found: Offsets, stored: Stored, *, refuse_none_after: bool = False
) -> Resolved:
    """Resolve times, by the offsets that brokers found for them.

    A queue that never held a message starts and ends at its latest offset. A missing queue in JSON is a loss.

    Args:
        times: the given times.
        found: offset of the first message stored then or later; any offset if there is none.
        stored: offsets stored in the queues.
        refuse_none_after: whether a queue without such a message is an error.

    Raises:
        ConfigError: JSON leaves a queue out, or a queue has no message from its time on.
    """
    none = [queue for queue, offset in found.items() if offset >= stored.latest[queue] > 0]
    if refuse_none_after and none:
        raise ConfigError(
            f"{places(none)} has no message stored at or after {times.at(none[0])}: set "
            "startingOffsetsByTimestampStrategy=latest to start such queues at their end"
        )
    named = () if isinstance(times.timestamps_ms, int) else times.timestamps_ms
    losses = tuple(find_missing(named, stored))
    return Resolved({queue: nearest_stored(at, queue, stored) for queue, at in found.items()}, losses)


def check_complete(given: Iterable[MessageQueue], known: Iterable[MessageQueue], *, remedy: str) -> None:
    """Check that JSON names every queue that is read.

    Raises:
        ConfigError: a queue is left out.
    """
    if missing := set(known) - set(given):
        raise ConfigError(f"{places(missing)} is left out: name every queue; {remedy}")


def _inside(offsets: Offsets, stored: Stored, *, holder: str) -> Resolved:
    losses = find_outside(offsets, stored, holder=holder)
    moved = {loss.queue: loss.go_on_at for loss in losses}
    inside = {queue: moved.get(queue, offset) for queue, offset in offsets.items()}
    return Resolved({queue: at for queue, at in inside.items() if at is not None}, tuple(losses))
