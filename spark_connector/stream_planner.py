"""What a streaming query knows between its micro-batches, and where the next one ends.

Lives in the query's own Python process on the driver, one per run of the query. Spark asks some 85 times a
second while a query is idle; brokers are asked when a batch is over, and else once per ``pollInterval``.
Behind a backlog of several batches they are asked once a second.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from rmqtools import MessageQueue
from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.errors import RemotingError
from rmqtools.log import get_logger
from spark_connector.admission import Limits, admit, is_due
from spark_connector.data_loss import Loss, find_losses, refuse_losses
from spark_connector.lookup import Stored
from spark_connector.stream_offsets import StreamOffsets

log = get_logger(__name__)

PATIENCE: Final = 60.0  # seconds that brokers may be silent; as long as Kafka's client asks, by default

_NEWS_CAN_WAIT: Final = 1.0  # seconds that a query behind a backlog plans by what it knows of it

Offsets = Mapping[MessageQueue, int]


class StreamBrokers(Protocol):
    """What the planner asks brokers. Every call goes over the network."""

    def fetch_stored(self, *, must_exist: bool) -> Stored:
        """What the queues there are now hold.

        Args:
            must_exist: raise where a topic or queue that was named is not there; else it is left out.
        """

    def resolve_start(self, stored: Stored) -> Offsets:
        """Where a new query starts, by its options."""

    def mean_bytes(self, queue: MessageQueue, begin: int, end: int) -> int:
        """About how large a stored message of a queue's range is; 1 or more."""

    def fetch_broker_names(self) -> Collection[str]:
        """The brokers that are up, as the name servers know."""


@dataclass(slots=True)
class StreamPlanner:
    """Plans the ends of micro-batches. Not thread-safe."""

    brokers: StreamBrokers
    limits: Limits
    poll_interval: float
    fail_on_data_loss: bool
    clock: Clock = SYSTEM_CLOCK
    _initial: StreamOffsets | None = None
    _stored: Stored | None = None
    _stored_at: float = 0.0
    _reported: dict[str, Any] | None = None
    _silent_since: float | None = None
    _asked_for: Any = None  # the start that brokers were last asked for
    _batch_at: float | None = None
    _frozen: bool = False
    _told: set[str] = field(default_factory=set)
    _away_since: dict[MessageQueue, float] = field(default_factory=dict)
    _missed: set[MessageQueue] = field(default_factory=set)  # not there at the last look, though brokers are

    def initial_offset(self) -> StreamOffsets:
        """Where a new query starts; the same however often it is asked.

        It goes into the first batch's end as well: Spark keeps that and not this.
        """
        if self._initial is None:
            stored = self.brokers.fetch_stored(must_exist=True)  # raises where something is missing
            if self._frozen and self._stored is not None:
                stored = self._stored
            else:
                self._note(stored)
            found = self.brokers.resolve_start(stored)
            offsets = {queue: min(at, stored.latest[queue]) for queue, at in found.items()}
            self._initial = StreamOffsets(next=offsets, begin=offsets)
        return self._initial

    def freeze(self) -> None:
        """Take what is stored now for all there is (Trigger.AvailableNow)."""
        self._fetch()
        self._frozen = True

    def reported_latest(self) -> dict[str, Any] | None:
        """What was stored when brokers were last asked, as JSON; None: they were not."""
        if self._reported is None and self._stored is not None:
            self._reported = StreamOffsets(self._stored.latest).to_json()
        return self._reported

    def plan(self, start_json: Mapping[str, Any], *, limited: bool) -> StreamOffsets | None:
        """Where the batch that begins at ``start_json`` ends; None: there is no batch to be run.

        Where nobody answers, a running query waits for a while, but for one that reads what is there now.

        Raises:
            DataLossError: offsets to be read are gone, and ``failOnDataLoss`` is set.
            RemotingError: brokers do not answer.
        """
        now, last = self.clock.monotonic(), self._stored_at
        try:
            end = self._plan(start_json, limited=limited)
        except RemotingError as error:
            since = now if self._silent_since is None else self._silent_since
            if self._stored is None or self._frozen or self.clock.monotonic() - since >= PATIENCE:
                raise
            if self._silent_since is None:
                log.warning("brokers_not_answering", reason=str(error), patience=PATIENCE)
            self._silent_since, self._stored_at = since, self.clock.monotonic()
            return None
        if self._stored_at != last:
            self._silent_since = None
        return end

    def _plan(self, start_json: Mapping[str, Any], *, limited: bool) -> StreamOffsets | None:
        stored = self._look(start_json, limited=limited)
        if stored is None:
            return None
        start = StreamOffsets.from_json(start_json)
        begin = self._begin(start, stored)
        backlog = {queue: stored.latest[queue] - at for queue, at in begin.items()}
        moved = any(start.next.get(queue, at) != at for queue, at in begin.items())
        is_due = not limited or self._is_due(backlog)
        if not is_due or not (moved or any(backlog.values())):
            return None
        end = _end(start, begin, self._admit(begin, backlog) if limited else backlog)
        self._batch_at = self.clock.monotonic()
        return end

    def _look(self, start: Mapping[str, Any], *, limited: bool) -> Stored | None:
        """What to plan with: news if a batch is over or some time has passed; None: wait.

        Behind a backlog that is known to fill the next batch news can wait for a moment.
        """
        waiting = self._asked_for == start
        if self._frozen:
            return self._stored
        age = self.clock.monotonic() - self._stored_at
        if waiting and age < self.poll_interval:
            return None
        if (
            limited
            and not waiting
            and age < min(self.poll_interval, _NEWS_CAN_WAIT)
            and self._is_filled(start)
        ):
            return self._stored
        self._asked_for = dict(start)
        return self._fetch()

    def _is_filled(self, start: Mapping[str, Any]) -> bool:
        """Whether what was stored at the last look fills a batch, by number."""
        if self._stored is None or self.limits.max_offsets is None or self.limits.max_bytes is not None:
            return False
        latest, following = self._stored.latest, StreamOffsets.from_json(start).next
        if following.keys() != latest.keys():
            return False
        return sum(latest[queue] - at for queue, at in following.items()) >= self.limits.max_offsets

    def _fetch(self) -> Stored:
        return self._note(self.brokers.fetch_stored(must_exist=False))

    def _note(self, stored: Stored) -> Stored:
        self._stored, self._stored_at, self._reported = stored, self.clock.monotonic(), None
        return stored

    def _begin(self, start: StreamOffsets, stored: Stored) -> dict[MessageQueue, int]:
        """Where every queue there is goes on; a new one from its first offset."""
        known = {queue: at for queue, at in start.next.items() if queue in stored.earliest}
        losses = find_losses(start.next, stored.earliest, stored.latest)
        if self.fail_on_data_loss:
            refuse_losses(self._for_good(losses))
        self._tell(losses)
        moved = {loss.queue: loss.go_on_at for loss in losses if loss.go_on_at is not None}
        return {**stored.earliest, **known, **moved}

    def _for_good(self, losses: list[Loss]) -> list[Loss]:
        """All but the queues of brokers that went only now: one that is restarted comes back with them.

        It may be up again since the queues were asked for, so they are missing for good only at the second
        look. A run that reads what is there now does not wait.
        """
        gone = {loss.queue for loss in losses if loss.go_on_at is None}
        self._away_since = {queue: since for queue, since in self._away_since.items() if queue in gone}
        if self._frozen or not gone:
            return losses
        up, now = self.brokers.fetch_broker_names(), self.clock.monotonic()
        without_reason = {queue for queue in gone if queue.broker_name in up}
        waited_for = {
            queue
            for queue in gone - (without_reason & self._missed)
            if now - self._away_since.setdefault(queue, now) < PATIENCE
        }
        self._missed = without_reason
        return [loss for loss in losses if loss.queue not in waited_for]

    def _tell(self, losses: list[Loss]) -> None:
        """Log every loss once."""
        for loss in losses:
            if loss.text not in self._told:
                log.warning("data_lost", loss=loss.text)
        self._told = {loss.text for loss in losses}

    def _is_due(self, backlog: Offsets) -> bool:
        """Whether enough waits. The first batch of a run of the query always is."""
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


def _end(start: StreamOffsets, begin: Offsets, counts: Offsets) -> StreamOffsets:
    """The offsets of the end, with the begins that those of the start do not tell or did not.

    A queue that is gone keeps its offset: its broker may come back.
    """
    untold = {queue: at for queue, at in begin.items() if start.next.get(queue) != at}
    kept = {queue: at for queue, at in start.begin.items() if start.next.get(queue) == at}
    ends = {queue: at + counts[queue] for queue, at in begin.items()}
    return StreamOffsets(next={**start.next, **ends}, begin={**kept, **untold})
