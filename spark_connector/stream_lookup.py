"""What a streaming query asks the cluster: queues that come and go, offsets, sizes of messages."""

from collections.abc import Collection, Mapping
from itertools import islice
from typing import Final

from rmqtools import MessageQueue, QueueRange
from rmqtools.errors import DataLossError, TopicNotFoundError
from spark_connector.clients import client_of
from spark_connector.lookup import Lookup, Stored
from spark_connector.selection import Assign
from spark_connector.stream_role import StreamOptions

_SAMPLE: Final = 32  # messages; what one pull may bring
_UNKNOWN_BYTES: Final = 1024  # a guess for a range without any message to look at


class StreamLookup:
    """The planner's questions, asked on the query's behalf. See ``stream_planner.StreamBrokers``."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._lookup = Lookup(options.read)

    def fetch_stored(self, *, must_exist: bool) -> Stored:
        """What the queues there are now hold."""
        if not must_exist:
            return self._lookup.stored(self._queues_left())
        stored = self._lookup.stored(self._lookup.queues())
        self._lookup.check_sql(stored)
        return stored

    def resolve_start(self, stored: Stored) -> Mapping[MessageQueue, int]:
        """Where a new query starts, by its options."""
        return self._lookup.resolve(self._options.start, stored)

    def mean_bytes(self, queue: MessageQueue, begin: int, end: int) -> int:
        """About how large a stored message of a range is, by a look at its first and its last messages."""
        samples = {begin: min(begin + _SAMPLE, end), max(begin, end - _SAMPLE): end}
        counts, sizes = zip(
            *(self._sample(QueueRange(queue, *range_)) for range_ in samples.items()), strict=True
        )
        return -(-sum(sizes) // sum(counts)) if sum(counts) else _UNKNOWN_BYTES

    def fetch_broker_names(self) -> Collection[str]:
        """The brokers that are up, as the name servers know."""
        return self._lookup.admin.fetch_cluster_info().broker_addr_table.keys()

    def _sample(self, range_: QueueRange) -> tuple[int, int]:
        """How many messages the first pull of a range brings, and their bytes."""
        blocks = client_of(self._options.read.client).read_blocks(range_, max_messages=1)
        try:
            return next(((len(block), len(block.buffer)) for block in islice(blocks, 1)), (0, 0))
        except DataLossError:  # expired meanwhile: whoever reads the range will say so
            return 0, 0

    def _queues_left(self) -> list[MessageQueue]:
        queues: list[MessageQueue] = []
        for topic in self._lookup.topics():
            try:
                queues += self._lookup.admin.fetch_subscribe_queues(topic)
            except TopicNotFoundError:
                continue
        selection = self._options.read.selection
        if isinstance(selection, Assign):
            return [queue for queue in queues if queue in selection.queues]
        return queues
