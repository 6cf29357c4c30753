"""Plans the micro-batches of a streaming query on PySpark 4.0 and 4.1.

There, Spark asks for the end of a batch before it gives its begin, and takes all waiting messages. So an end
carries every begin that its start may lack: see :mod:`spark_connector.read.stream_offsets`.

When a query starts again, Spark first asks for the ranges of an empty batch at its last offsets
(``setLatestSeenOffset`` of PythonMicroBatchStream). The first end keeps those of queues whose broker is away.

Ends are never answered from memory, as in :mod:`spark_connector.read.stream_planner`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rmqtools import MessageQueue
from rmqtools.clock import SYSTEM_CLOCK, Clock, pause
from rmqtools.errors import ConfigError, RemotingError
from rmqtools.log import get_logger
from spark_connector.options.queue_json import place
from spark_connector.read.loss import PATIENCE, find_losses, report_losses
from spark_connector.read.stored import Stored
from spark_connector.read.stream_offsets import StreamOffsets, batch_begin
from spark_connector.read.stream_planner import StreamBrokers

log = get_logger(__name__)

Offsets = Mapping[MessageQueue, int]


@dataclass(slots=True)
class EarlyPlanner:
    """Plans the ends of micro-batches without their starts. Not thread-safe."""

    brokers: StreamBrokers
    poll_interval: float
    fail_on_data_loss: bool
    patience: float = PATIENCE
    clock: Clock = SYSTEM_CLOCK
    wait: Callable[[float], object] = pause
    _stored: Stored | None = None
    _asked_at: float = 0.0
    _silent_since: float | None = None
    _gone_since: dict[MessageQueue, float] = field(default_factory=dict)
    _awaited: set[MessageQueue] = field(default_factory=set)  # gone at the last check, may come back
    _last: StreamOffsets | None = None  # the last planned end
    _is_told: bool = True  # whether Spark has asked for an end since
    _read: dict[MessageQueue, int] = field(default_factory=dict)  # next offsets that Spark has given
    _initial: Offsets | None = None
    _initial_error: ConfigError | None = None
    _is_new: bool = False

    def initial_offset(self) -> StreamOffsets:
        """Return the start of a new query; Spark asks only if the checkpoint has no batch.

        Raises:
            ConfigError: the options name offsets that do not fit.
        """
        if self._last is None:
            self.latest_offset()
            self._is_told = False
        self._is_new = True
        if self._initial_error is not None:
            raise self._initial_error
        assert self._initial is not None
        return StreamOffsets(next=self._initial, begin=self._initial)

    def latest_offset(self) -> StreamOffsets:
        """Return the end of the next batch; the last one if nothing is new. May wait for ``poll_interval``.

        Raises:
            RemotingError: brokers do not answer, for longer than ``patience`` once they did.
        """
        if self._last is not None:
            if not self._is_told:
                self._is_told = True
                return self._last
            self._await_poll()
        now = self.clock.monotonic()
        try:
            self._last = self._plan()
        except RemotingError as error:
            self._silent_since = now if self._silent_since is None else self._silent_since
            if self._last is None or now - self._silent_since >= self.patience:
                raise
            log.warning("brokers_not_answering", reason=str(error), patience=self.patience)
        else:
            self._silent_since = None
        self._asked_at = self.clock.monotonic()
        return self._last

    def ranges(self, start: StreamOffsets, end: StreamOffsets) -> tuple[Offsets, Offsets]:
        """Begin and end of every queue in a batch, the same for every run of the batch.

        Raises:
            DataLossError: offsets to read are lost, and ``failOnDataLoss`` is set.
            ConfigError: the query is past its ending offsets.
        """
        is_first = self._is_new and start.next == self._initial
        begin = batch_begin(start, end, is_first=is_first)
        self._read |= {**({} if is_first else start.next), **end.next}
        lost = self._report_losses({**({} if is_first else start.next), **begin})
        for queue in sorted(begin):
            if begin[queue] <= end.next[queue]:
                continue
            if queue not in lost:
                raise ConfigError(
                    f"the query has read {place(queue)} up to {begin[queue]}, past its ending offset "
                    f"{end.next[queue]}: end it later, or use a new checkpoint"
                )
            begin[queue] = end.next[queue]
        return begin, end.next

    def _await_poll(self) -> None:
        rest = self._asked_at + self.poll_interval - self.clock.monotonic()
        if rest > 0:
            self.wait(rest)

    def _plan(self) -> StreamOffsets:
        last = self._last
        stored = self.brokers.fetch_stored(must_exist=last is None)
        ends = self.brokers.fetch_ends(stored)
        readable = {
            queue: latest if ends is None else min(ends.offsets.get(queue, 0), latest)
            for queue, latest in stored.latest.items()
        }
        self._stored = stored
        self._note_gone(stored)
        if last is None:
            self._resolve_initial(stored, readable)
            away = {queue: at for queue, at in self._read.items() if queue not in readable}
            return StreamOffsets(
                {**away, **readable}, begin=away, initial=self._initial or {}, new=stored.earliest
            )
        offsets = {**self._read, **last.next, **readable}
        if offsets == last.next:
            return last
        added = offsets.keys() - last.next.keys()
        return StreamOffsets(
            offsets,
            begin={queue: self._read[queue] for queue in added if queue in self._read},
            new={queue: stored.earliest[queue] for queue in added if queue not in self._read},
        )

    def _note_gone(self, stored: Stored) -> None:
        """Note since when queues that the query has read are missing."""
        now, last = self.clock.monotonic(), self._last.next if self._last else {}
        gone = (self._read.keys() | last.keys()) - stored.earliest.keys()
        self._gone_since = {queue: self._gone_since.get(queue, now) for queue in gone}

    def _resolve_initial(self, stored: Stored, readable: Offsets) -> None:
        """Find the start by the options. A query with a checkpoint does not need it, so an error waits."""
        try:
            found = self.brokers.resolve_start(stored)
            self._initial = {queue: min(at, readable[queue]) for queue, at in found.items()}
        except ConfigError as error:
            self._initial_error = error

    def _report_losses(self, offsets: Offsets) -> set[MessageQueue]:
        """Raise an error for lost offsets, or log them; return their queues.

        A broker that is down may come back: its queues are lost after ``patience`` seconds.
        """
        stored = self._stored or self.brokers.fetch_stored(must_exist=False)
        losses = find_losses(offsets, stored, is_selected=self.brokers.is_selected)
        gone = {loss.queue for loss in losses if loss.queue and loss.queue not in stored.earliest}
        up = self.brokers.fetch_broker_names() if gone else ()
        now = self.clock.monotonic()
        awaited = {
            queue
            for queue in gone
            if queue.broker_name not in up
            and now - self._gone_since.get(queue, now) < self.patience
            and self.brokers.is_selected(queue)
        }
        for queue in sorted(awaited - self._awaited):
            log.warning("queue_awaited", queue=place(queue), next_offset=offsets[queue])
        self._awaited = awaited
        report_losses([loss for loss in losses if loss.queue not in awaited], fail=self.fail_on_data_loss)
        return {loss.queue for loss in losses if loss.queue is not None}
