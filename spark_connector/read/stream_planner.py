"""Plans where a streaming query's next micro-batch ends, and keeps the query's state between batches.

One planner lives in the query's own Python process on the driver, per run of the query. Spark asks it again
11 ms after an answer without new data. Brokers are asked when a batch is over, otherwise once per
``pollInterval``; if a backlog fills several batches, once a second.

"No new data" is never answered from memory: ``processAllAvailable()`` returns after such an answer, so the
answer must include all messages stored before Spark's question. The planner waits until brokers may be asked.

A stream's planner never answers "no new data" from memory: Spark's ``processAllAvailable()`` returns after
such an answer. It waits for the rest of ``pollInterval``, but not after a batch: then another source of the
query may have data, and Spark asks all sources in turn.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from rmqtools import MessageQueue
from rmqtools.clock import SYSTEM_CLOCK, Clock, pause
from rmqtools.errors import RemotingError
from rmqtools.log import get_logger
from spark_connector.options.batch_limits import Limits
from spark_connector.read.bounds import Ends
from spark_connector.read.loss import PATIENCE, QueueMark
from spark_connector.read.rate_limit import admit, is_due
from spark_connector.read.stored import Stored
from spark_connector.read.stream_losses import LossBrokers, LossWatch
from spark_connector.read.stream_offsets import StreamOffsets, batch_begin

log = get_logger(__name__)

_ANSWER_LIFETIME: Final = 1.0  # seconds for which a query with a backlog plans by the last answer
_MARK_EVERY: Final = 10.0  # seconds; a mark costs a pull of one message per queue

Offsets = Mapping[MessageQueue, int]


class StreamBrokers(LossBrokers, Protocol):
    """The planner's requests to brokers. Every call except ``is_selected`` uses the network."""

    def fetch_stored(self, *, must_exist: bool) -> Stored:
        """Fetch the stored offsets of the queues that exist now.

        Args:
            must_exist: raise an error for missing topics or queues that the options name, else leave them
                out.
        """

    def resolve_start(self, stored: Stored) -> Offsets:
        """Find the start of a new query, by its options."""

    def fetch_ends(self, stored: Stored) -> Ends | None:
        """Find the end of the query, as far as it is known now; None: endless."""

    def mean_bytes(self, queue: MessageQueue, begin: int, end: int) -> int:
        """Mean size of the stored messages in a queue's range; 1 or more."""


@dataclass(slots=True)
class StreamPlanner:
    """Plans the ends of micro-batches. Not thread-safe."""

    brokers: StreamBrokers
    limits: Limits
    poll_interval: float
    fail_on_data_loss: bool
    patience: float = PATIENCE
    clock: Clock = SYSTEM_CLOCK
    wait: Callable[[float], object] = pause
    _initial: StreamOffsets | None = None
    _stored: Stored | None = None
    _ends: Ends | None = None
    _stored_at: float = 0.0
    _reported: dict[str, Any] | None = None
    _silent_since: float | None = None
    _asked_for: Any = None  # the start for which brokers were asked last
    _batch_ran: bool = False  # since the last plan; of this source, or of another one of the query
    _planned: StreamOffsets | None = None
    _batch_at: float | None = None
    _frozen: bool = False
    _losses: LossWatch = field(init=False)
    _marked_at: float | None = None

    def __post_init__(self) -> None:
        self._losses = LossWatch(self.brokers, fail_on_data_loss=self.fail_on_data_loss, clock=self.clock)

    def initial_offset(self) -> StreamOffsets:
        """Return the start of a new query; repeated calls give the same.

        It is also part of the first batch's end, because Spark stores only that.
        """
        if self._initial is None:
            stored = self.brokers.fetch_stored(must_exist=True)  # raises if a queue is missing
            if self._frozen and self._stored is not None:
                stored = self._stored
            else:
                self._note(stored)
            found = self.brokers.resolve_start(stored)
            offsets = {queue: min(at, stored.latest[queue]) for queue, at in found.items()}
            initial = StreamOffsets(next=offsets, begin=offsets)
            self._initial = replace(initial, marks=self._marks(initial, {}))
        return self._initial

    def freeze(self) -> None:
        """Limit this run to the messages stored now (Trigger.AvailableNow)."""
        self._fetch()
        self._frozen = True

    def reported_latest(self) -> dict[str, Any] | None:
        """Return the readable ends when brokers were last asked, as JSON; None: not asked yet.

        For a query with an end, ``final`` is true if these offsets are that end, of all queues.
        """
        if self._reported is None and self._stored is not None:
            readable = {queue: self._end_of(queue, self._stored) for queue in self._stored.latest}
            is_whole = not self._losses.is_waiting
            ends = {} if self._ends is None else {"final": is_whole and self._ends.are_stored(self._stored)}
            self._reported = StreamOffsets(readable).to_json() | ends
        return self._reported

    def ranges(self, start: StreamOffsets, end: StreamOffsets) -> tuple[Offsets, Offsets]:
        """Begin and end of every queue in a batch, the same for every run of the batch.

        A batch planned by an earlier run of the query is compared with the offsets stored now. If losses are
        allowed, queues of a topic that was recreated since are skipped.

        Raises:
            DataLossError: a queue is no longer selected, or its topic was recreated, and ``failOnDataLoss``
                is set.
        """
        self.note_batch()
        begin = batch_begin(start, end, is_first=start == self._initial)
        if start == end or end == self._planned:
            return begin, end.next
        anew = self._losses.recreated_in(end, self._stored or self._fetch())
        return begin, {**end.next, **{queue: begin[queue] for queue in anew}}

    def note_batch(self) -> None:
        """Note that the query runs a batch. If only other sources have data, :meth:`plan` must not wait."""
        self._batch_ran = True

    def plan(self, start_json: Mapping[str, Any], *, limited: bool) -> StreamOffsets | None:
        """Return the end of the batch that begins at ``start_json``; None: no batch is to run now.

        May wait for ``poll_interval`` before it asks; Spark can stop the query meanwhile. If brokers do not
        answer, a running query waits for ``patience`` seconds; one limited to the messages stored now does
        not.

        Raises:
            DataLossError: offsets to read are lost, and ``failOnDataLoss`` is set.
            RemotingError: brokers do not answer.
        """
        self._await_poll(start_json)
        now, last = self.clock.monotonic(), self._stored_at
        try:
            end = self._plan(start_json, limited=limited)
        except RemotingError as error:
            since = now if self._silent_since is None else self._silent_since
            if self._stored is None or self._frozen or self.clock.monotonic() - since >= self.patience:
                raise
            if self._silent_since is None:
                log.warning("brokers_not_answering", reason=str(error), patience=self.patience)
            self._silent_since, self._stored_at = since, self.clock.monotonic()
            return None
        if self._stored_at != last:
            self._silent_since = None
        return end

    def _await_poll(self, start_json: Mapping[str, Any]) -> None:
        """Wait for the rest of ``poll_interval`` if the query has been idle since the last request."""
        is_idle = self._asked_for == start_json and not self._batch_ran
        self._batch_ran = False
        rest = self._stored_at + self.poll_interval - self.clock.monotonic()
        if is_idle and not self._frozen and rest > 0:
            self.wait(rest)

    def _plan(self, start_json: Mapping[str, Any], *, limited: bool) -> StreamOffsets | None:
        start = StreamOffsets.from_json(start_json)
        stored = self._stored_now(start_json, start, limited=limited)
        begin, anew = self._losses.begin_after(start, stored, may_wait=not self._frozen)
        self._reported = None
        backlog = {queue: max(self._end_of(queue, stored) - at, 0) for queue, at in begin.items()}
        moved = any(start.next.get(queue, at) != at for queue, at in begin.items())
        is_due = not limited or self._is_due(backlog)
        if not is_due or not (moved or any(backlog.values())):
            return None
        end = _end(start, begin, self._admit(begin, backlog) if limited else backlog)
        kept = {queue: mark for queue, mark in start.marks.items() if queue not in anew}
        self._planned = replace(end, marks=self._marks(end, kept))
        self._batch_at = self.clock.monotonic()
        return self._planned

    def _stored_now(self, start_json: Mapping[str, Any], start: StreamOffsets, *, limited: bool) -> Stored:
        """Offsets to plan with: the last answer if it is fresh and fills the next batch, else a new one."""
        if self._frozen and self._stored is not None:
            return self._stored
        age = self.clock.monotonic() - self._stored_at
        if (
            limited
            and self._asked_for != start_json
            and self._stored is not None
            and age < min(self.poll_interval, _ANSWER_LIFETIME)
            and self._is_filled(start, self._stored)
        ):
            return self._stored
        self._asked_for = dict(start_json)
        return self._fetch()

    def _is_filled(self, start: StreamOffsets, stored: Stored) -> bool:
        """Return whether the messages stored at the last check fill a batch, by number."""
        if self.limits.max_offsets is None or self.limits.max_bytes is not None:
            return False
        if start.next.keys() != stored.latest.keys():
            return False
        waiting = sum(max(self._end_of(queue, stored) - at, 0) for queue, at in start.next.items())
        return waiting >= self.limits.max_offsets

    def _end_of(self, queue: MessageQueue, stored: Stored) -> int:
        """Return the offset up to which a queue can be read now."""
        latest = stored.latest[queue]
        return latest if self._ends is None else min(latest, self._ends.offsets.get(queue, 0))

    def _fetch(self) -> Stored:
        return self._note(self.brokers.fetch_stored(must_exist=False))

    def _note(self, stored: Stored) -> Stored:
        self._ends = self.brokers.fetch_ends(stored)
        self._stored = stored
        self._stored_at = self.clock.monotonic()
        self._reported = None
        self._losses.note(stored)
        return stored

    def _is_due(self, backlog: Offsets) -> bool:
        """Return whether enough messages wait. True for the first batch of a run."""
        if self._frozen:
            return True
        if self._batch_at is None:
            self._batch_at = self.clock.monotonic()
            return True
        return is_due(sum(backlog.values()), self.clock.monotonic() - self._batch_at, self.limits)

    def _admit(self, begin: Offsets, backlog: Offsets) -> dict[MessageQueue, int]:
        sizes = {}
        if self.limits.max_bytes is not None:
            sizes = {
                queue: self.brokers.mean_bytes(queue, begin[queue], begin[queue] + count)
                for queue, count in backlog.items()
                if count
            }
        return admit(backlog, self.limits, sizes)

    def _marks(
        self, end: StreamOffsets, kept: Mapping[MessageQueue, QueueMark]
    ) -> dict[MessageQueue, QueueMark]:
        """Return the marks of a batch's end: kept ones that are fresh, and new ones for the other queues."""
        assert self._stored is not None
        now = self.clock.monotonic()
        kept = {queue: mark for queue, mark in kept.items() if mark.offset < end.next.get(queue, 0)}
        is_fresh = self._marked_at is not None and now - self._marked_at < _MARK_EVERY
        last = {
            queue: at - 1
            for queue, at in end.next.items()
            if self._stored.holds(queue, at - 1)
            and (queue not in kept or not (is_fresh or kept[queue].offset == at - 1))
        }
        if not last:
            return kept
        self._marked_at = now
        times = self.brokers.store_times(last)
        return kept | {queue: QueueMark(last[queue], time) for queue, time in times.items()}


def _end(start: StreamOffsets, begin: Offsets, counts: Offsets) -> StreamOffsets:
    """Return the end of a batch, with those begins that cannot be derived from the start's offsets.

    A missing queue keeps its offset, because its broker may come back.
    """
    untold = {queue: at for queue, at in begin.items() if start.next.get(queue) != at}
    kept = {queue: at for queue, at in start.begin.items() if start.next.get(queue) == at}
    ends = {queue: at + counts[queue] for queue, at in begin.items()}
    return StreamOffsets(next={**start.next, **ends}, begin={**kept, **untold})
