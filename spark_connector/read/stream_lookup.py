"""A streaming query's requests to the cluster: changing queues, offsets, message sizes."""

from collections.abc import Collection, Mapping
from itertools import islice
from typing import Final

from rmqtools import MessageQueue, QueueRange
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import ConfigError, DataLossError
from rmqtools.log import get_logger
from spark_connector.options.offsets import Bound, Times
from spark_connector.options.queue_json import place
from spark_connector.options.stream_settings import StreamOptions
from spark_connector.read.bounds import TIMES_REMEDY, Ends, check_complete, resolve_stream_end
from spark_connector.read.lookup import Lookup
from spark_connector.read.stored import Stored
from spark_connector.worker.clients import client_of

log = get_logger(__name__)

_SAMPLE: Final = 32  # messages; the most that one pull returns
_CLOCKS_DIFFER_MS: Final = (
    10_000  # tolerance between the clocks of driver and brokers; brokers set store times
)
_UNKNOWN_BYTES: Final = 1024  # assumed for a range without a message to sample


class StreamLookup:
    """Implements ``stream_planner.StreamBrokers`` for one query.

    Until the first answer it waits for silent brokers itself. Later the planner waits, so that Spark can stop
    the query meanwhile.
    """

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._lookup = Lookup(options.read)
        self._ends: Ends | None = None

    def fetch_stored(self, *, must_exist: bool) -> Stored:
        """Return the stored offsets of the queues that exist now."""
        must_exist = must_exist and self._options.must_exist
        queues = self._lookup.queues() if must_exist else self._lookup.queues_left()
        if self._lookup.is_patient:  # the first question of this run
            self._lookup.check_read_group(queues)
        stored = self._lookup.stored(queues)
        if must_exist:
            self._lookup.check_sql(stored)
        self._lookup.is_patient = False
        return stored

    def resolve_start(self, stored: Stored) -> Mapping[MessageQueue, int]:
        """Return the start of a new query, by its options."""
        return self._lookup.resolve(self._options.start, stored)

    def fetch_ends(self, stored: Stored) -> Ends | None:
        """Return the end of the query, as far as it is known now; None: endless."""
        end, known = self._options.end, self._ends
        if end is None or (known is not None and known.is_final and _is_whole(known, end, stored)):
            return known
        if end.spec == "group":
            offsets = self._lookup.resolve(end, stored, is_start=False)
            self._ends = Ends(offsets, is_final=bool(stored.latest))
            return self._ends
        try:
            if isinstance(end.spec, Times):
                self._ends = self._ends_at(end.spec, stored)
            else:
                self._ends = resolve_stream_end(end.spec, stored)
                _log_missing(self._ends, stored)
        except ConfigError as error:
            raise ConfigError(f"option {end.option!r}: {error}") from None
        return self._ends

    def _ends_at(self, times: Times, stored: Stored) -> Ends:
        """Find ends by time. Final if a later message is stored, or the time has passed on all clocks.

        Raises:
            ConfigError: JSON leaves out a queue that exists when the ends are first found.
        """
        queues = _with_times(times, stored)
        if self._ends is None or not self._ends.offsets:
            check_complete(queues, stored.latest, remedy=TIMES_REMEDY)
        found = self._lookup.offsets_at(times, queues)
        now = SYSTEM_CLOCK.now_ms() - _CLOCKS_DIFFER_MS
        is_final = all(at < stored.latest[queue] or times.at(queue) <= now for queue, at in found.items())
        return Ends(found, is_final=is_final and bool(found))

    def store_times(self, offsets: Mapping[MessageQueue, int]) -> Mapping[MessageQueue, int]:
        """Store times in ms of the messages at these offsets; queues without a message there are left out."""
        return self._lookup.store_times(offsets)

    def is_selected(self, queue: MessageQueue) -> bool:
        """Return whether the options select a queue, even if it does not exist."""
        return self._options.read.selection.covers(queue)

    def mean_bytes(self, queue: MessageQueue, begin: int, end: int) -> int:
        """Estimate the size of a stored message of a range, from its first and last messages."""
        samples = {begin: min(begin + _SAMPLE, end), max(begin, end - _SAMPLE): end}
        counts, sizes = zip(
            *(self._sample(QueueRange(queue, *range_)) for range_ in samples.items()), strict=True
        )
        return -(-sum(sizes) // sum(counts)) if sum(counts) else _UNKNOWN_BYTES

    def fetch_broker_names(self) -> Collection[str]:
        """Names of the running brokers, as name servers list them."""
        return self._lookup.broker_names()

    def _sample(self, range_: QueueRange) -> tuple[int, int]:
        """Return the number of messages in the first pull of a range, and their bytes."""
        blocks = client_of(self._options.read.client).read_blocks(range_, max_messages=1)
        try:
            return next(((len(block), len(block.buffer)) for block in islice(blocks, 1)), (0, 0))
        except DataLossError:  # expired meanwhile: the task that reads the range raises it
            return 0, 0


def _log_missing(ends: Ends, stored: Stored) -> None:
    """Log the queues that are missing when their ends are fixed: without them the query has no end."""
    missing = [queue for queue, at in ends.offsets.items() if at and queue not in stored.latest]
    for queue in sorted(missing if ends.is_final else ()):
        log.warning("queue_awaited", queue=place(queue), end=ends.offsets[queue])


def _is_whole(ends: Ends, bound: Bound, stored: Stored) -> bool:
    """Return whether no queue with an ending time lacks its end, because its broker was away before."""
    return not isinstance(bound.spec, Times) or ends.offsets.keys() >= set(_with_times(bound.spec, stored))


def _with_times(times: Times, stored: Stored) -> list[MessageQueue]:
    given = times.timestamps_ms
    return [queue for queue in stored.latest if isinstance(given, int) or queue in given]
