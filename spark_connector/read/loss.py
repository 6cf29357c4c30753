"""The loss policy: what happens when offsets to read are not stored, or no longer; pure.

Batches, the start of a stream, a running stream, a replayed batch and offsets in JSON follow one table:

    found                                        failOnDataLoss=true    failOnDataLoss=false (logged)
    messages have expired                        error                  the queue's first stored offset
    the queue ends before the offset             error                  the queue's end
    the queue is gone: topic deleted, fewer
      queues, broker gone (1)                    error                  skipped; continued if it comes back
    the options no longer select the queue       error                  skipped
    the topic was recreated (2)                  error                  the queue's first stored offset
    an option names an offset not stored         error                  the nearest stored offset
    an option names a missing queue              error                  skipped
    an option names a missing topic              error                  skipped, if another one exists
    a queue without any message is gone, its
      broker has other queues of the topic       no loss                no loss

(1) A running stream waits first: see :class:`GoneQueues`. The reading tasks check the ranges they got
(``rmqtools.engine.reading.range_read``), by the same option.

(2) A checkpoint keeps a mark per queue: the offset of a message that was read, and its store time. If another
message is stored at that offset now, the topic was recreated. This is undetectable if the marked message has
expired, the new queue is shorter, or the checkpoint is of an earlier version without marks. A running query
compares marks where a queue was missing, and where its last check was 10 s ago or more.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError, DataLossError, TopicNotFoundError
from rmqtools.log import get_logger
from spark_connector.options.queue_json import place, places
from spark_connector.options.selection import similar_topics
from spark_connector.read.stored import Stored

log = get_logger(__name__)

REMEDY: Final = "set option 'failOnDataLoss' to false to log this and to go on with what is there"
PATIENCE: Final = 60.0  # seconds without an answer from brokers; the default of Kafka's client

Offsets = Mapping[MessageQueue, int]


@dataclass(frozen=True, slots=True)
class Loss:
    """A queue's or topic's loss in words, and the offset to continue at; None: the queue is skipped."""

    queue: MessageQueue | None
    text: str
    go_on_at: int | None = None


@dataclass(frozen=True, slots=True)
class QueueMark:
    """A message that identifies a queue: its offset and its store time (ms since 1970)."""

    offset: int
    stored_ms: int


def report_losses(losses: Sequence[Loss], *, fail: bool, option: str | None = None) -> None:
    """Raise an error for losses, or log each.

    Args:
        losses: losses found together.
        fail: the option ``failOnDataLoss``.
        option: the option that gave the offsets; None: a stream's checkpoint or a plan did.

    Raises:
        DataLossError: there is a loss and ``fail`` is set; names the offsets and the remedy.
        ConfigError: the same, for offsets given by an option.
    """
    if losses and fail:
        text = f"{'; '.join(loss.text for loss in losses)}: {REMEDY}"
        raise DataLossError(text) if option is None else ConfigError(f"option {option!r}: {text}")
    for loss in losses:
        log.warning("data_lost", loss=loss.text)


def report_missing_topics(
    missing: Collection[str],
    present: Collection[str],
    *,
    fail: bool,
    fetch_known: Callable[[], Collection[str]],
) -> None:
    """Raise an error for missing topics that the options name, or log them.

    Args:
        missing: named topics without a route.
        present: named topics with a route.
        fail: the option ``failOnDataLoss``.
        fetch_known: returns all topics; called only for the text of the error.

    Raises:
        TopicNotFoundError: a topic is missing, and ``fail`` is set or no topic is present. The text names
            topics with similar names.
    """
    if not missing:
        return
    text = f"{', '.join(f'topic {topic!r}' for topic in sorted(missing))} has no route: it does not exist"
    if fail or not present:
        hint = similar_topics(sorted(missing), fetch_known())
        raise TopicNotFoundError(f"{text}{hint}; correct the name{f', or {REMEDY}' if present else ''}")
    report_losses([Loss(None, text)], fail=False)


def report_missing_queues(
    assigned: Collection[MessageQueue], present: Collection[MessageQueue], *, fail: bool
) -> list[MessageQueue]:
    """Return the present queues of option ``assign``, sorted; raise an error for the others, or log them.

    Raises:
        ConfigError: a queue is missing, and ``fail`` is set or all are missing.
    """
    found = sorted(set(assigned) & set(present))
    if missing := sorted(set(assigned) - set(present)):
        text = f"{places(missing)} does not exist or cannot be read: its topics have {places(present)}"
        report_losses([Loss(None, text)], fail=fail or not found, option="assign")
    return found


def find_losses(
    next_offsets: Offsets,
    stored: Stored,
    *,
    filled: Collection[MessageQueue] = (),
    is_selected: Callable[[MessageQueue], bool] = lambda queue: True,
    made_anew: Collection[MessageQueue] = (),
) -> list[Loss]:
    """Compare the offsets that a stream reads next with the stored ones.

    Source of the rule: DefaultMessageStore.getMessage (broker), OFFSET_TOO_SMALL and OFFSET_OVERFLOW_BADLY.

    Args:
        next_offsets: the next offset to read, per queue read so far.
        stored: stored offsets of the existing queues.
        filled: queues known to have held messages.
        is_selected: whether the options select a queue.
        made_anew: queues whose topic was recreated, see :func:`find_made_anew`.
    """
    losses = []
    for queue in sorted(next_offsets):
        next_offset = next_offsets[queue]
        if queue not in stored.earliest:
            has_nothing = not next_offset and queue not in filled
            loss = _loss_of_gone(queue, next_offset, stored, is_selected, has_nothing=has_nothing)
        elif queue in made_anew:
            text = f"the topic of {place(queue)} was made anew: another message than the one read is stored"
            loss = Loss(queue, f"{text} before offset {next_offset}", stored.earliest[queue])
        else:
            loss = _loss_of_present(queue, next_offset, stored)
        if loss is not None:
            losses.append(loss)
    return losses


def find_missing(queues: Iterable[MessageQueue], stored: Stored) -> list[Loss]:
    """Losses of queues that a user named and that do not exist."""
    return [
        Loss(queue, f"{place(queue)} does not exist among {places(stored.earliest)}")
        for queue in sorted(queues)
        if queue not in stored.earliest
    ]


def find_outside(offsets: Offsets, stored: Stored, *, holder: str) -> list[Loss]:
    """Losses of offsets that a user or a group gave: not stored, or of a missing queue.

    Args:
        offsets: as given; not negative.
        stored: offsets stored in the queues.
        holder: beginning of the text: the origin of the offsets.
    """
    losses = find_missing(offsets, stored)
    for queue, offset in sorted(offsets.items()):
        if queue not in stored.earliest:
            continue
        earliest, latest = stored.earliest[queue], stored.latest[queue]
        if not earliest <= offset <= latest:
            text = (
                f"{holder} {offset} of {place(queue)} is not stored: the queue holds {earliest} to {latest}"
            )
            losses.append(Loss(queue, text, nearest_stored(offset, queue, stored)))
    return losses


def find_made_anew(
    marks: Mapping[MessageQueue, QueueMark], times: Mapping[MessageQueue, int]
) -> dict[MessageQueue, QueueMark]:
    """Return the queues with another message at their marked offset, with their marks.

    Args:
        marks: marks of the checkpoint.
        times: store times of the messages at the marked offsets, if stored.
    """
    return {
        queue: mark for queue, mark in marks.items() if times.get(queue, mark.stored_ms) != mark.stored_ms
    }


def nearest_stored(offset: int, queue: MessageQueue, stored: Stored) -> int:
    """Return the offset itself, or the nearest end of the stored range."""
    return min(max(offset, stored.earliest[queue]), stored.latest[queue])


@dataclass(slots=True)
class GoneQueues:
    """Waits for queues that disappear while a stream runs, since a restarted broker brings them back.

    A name server drops a broker's queues when its connection breaks, and restores them when it is back. So a
    queue is lost if it is missing at two checks although its broker is up, or if its broker has been down for
    :data:`PATIENCE` seconds.
    """

    _since: dict[MessageQueue, float] = field(default_factory=dict)
    _missed: set[MessageQueue] = field(default_factory=set)

    def certain(
        self, losses: Sequence[Loss], brokers_up: Callable[[], Collection[str]], now: float
    ) -> list[Loss]:
        """Return the losses that are certain now.

        Args:
            losses: losses of this check, without queues that the options do not select.
            brokers_up: fetches the names of running brokers; called only if a queue is gone.
            now: seconds, of a monotonic clock.
        """
        gone = {loss.queue for loss in losses if loss.queue is not None and loss.go_on_at is None}
        self._since = {queue: since for queue, since in self._since.items() if queue in gone}
        if not gone:
            self._missed = set()
            return list(losses)
        up = brokers_up()
        without_reason = {queue for queue in gone if queue.broker_name in up}
        awaited = {
            queue
            for queue in gone - (without_reason & self._missed)
            if now - self._since.setdefault(queue, now) < PATIENCE
        }
        self._missed = without_reason
        return [loss for loss in losses if loss.queue not in awaited]


def _loss_of_gone(
    queue: MessageQueue,
    next_offset: int,
    stored: Stored,
    is_selected: Callable[[MessageQueue], bool],
    *,
    has_nothing: bool,
) -> Loss | None:
    rest = f"offsets from {next_offset} on cannot be read"
    if not is_selected(queue):
        return Loss(queue, f"{place(queue)} is no longer selected by the options: {rest}")
    if has_nothing and any(_are_neighbours(queue, other) for other in stored.earliest):
        return None
    return Loss(queue, f"{place(queue)} is gone (topic deleted, fewer queues, or broker gone): {rest}")


def _loss_of_present(queue: MessageQueue, next_offset: int, stored: Stored) -> Loss | None:
    earliest, latest = stored.earliest[queue], stored.latest[queue]
    if next_offset < earliest:
        return Loss(queue, f"offsets [{next_offset}, {earliest}) of {place(queue)} have expired", earliest)
    if next_offset > latest:
        text = f"{place(queue)} ends at {latest}, before offset {next_offset} that is next"
        return Loss(queue, text, latest)
    return None


def _are_neighbours(queue: MessageQueue, other: MessageQueue) -> bool:
    return (queue.topic, queue.broker_name) == (other.topic, other.broker_name)
