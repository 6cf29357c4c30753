"""Computes the lag of streaming queries from Spark's progress reports, without asking brokers.

spark_connector.lag(query)                      # {MessageQueue: messages waiting}

history = spark_connector.LagHistory()
spark.streams.addListener(history)
...
history.plot("lag.svg")
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StreamingQueryListener

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError
from rmqtools.plot import lag_figure
from spark_connector.read.spark_version import require_reported_offsets
from spark_connector.read.stream_offsets import StreamOffsets, batch_begin, offsets_of_progress

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent


def lag(query: "StreamingQuery") -> dict[MessageQueue, int]:
    """Return the offsets waiting after a query's last micro-batch, per queue; empty before its first.

    Raises:
        ConfigError: PySpark is older than 4.2.
    """
    require_reported_offsets("spark_connector.lag")
    progress = query.lastProgress
    return {} if progress is None else lag_of(progress)


def lag_of(progress: Mapping[str, Any]) -> dict[MessageQueue, int]:
    """Return the waiting offsets per queue: stored when brokers were last asked, minus read.

    Args:
        progress: Spark's ``StreamingQueryProgress``, or the JSON of one. Sources of other formats are
            ignored; a queue that two sources read has the larger lag.
    """
    found: dict[MessageQueue, int] = {}
    for source in progress["sources"]:
        end, latest = offsets_of_progress(source["endOffset"]), offsets_of_progress(source["latestOffset"])
        if end is None or latest is None:
            continue
        for queue, offset in latest.next.items():
            waiting = max(offset - end.next.get(queue, 0), 0)
            found[queue] = max(waiting, found.get(queue, 0))
    return found


def rates_of(progress: Mapping[str, Any]) -> dict[str, float]:
    """Offsets read per second from each broker by the micro-batch; empty if no batch ran."""
    counts: Counter[str] = Counter()
    for source in progress["sources"]:
        end = offsets_of_progress(source["endOffset"])
        if end is None:
            continue
        begin = batch_begin(offsets_of_progress(source["startOffset"]) or StreamOffsets({}), end)
        for queue, offset in end.next.items():
            counts[queue.broker_name] += offset - begin[queue]
    seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
    return {broker: count / seconds for broker, count in sorted(counts.items())} if seconds else {}


@dataclass(frozen=True, slots=True)
class LagPoint:
    """Lag and rates of one query at one progress report.

    Attributes:
        query_id: the query's id, constant over restarts.
        timestamp: start of the trigger, ISO 8601 in UTC, as Spark writes it.
        lag: see :func:`lag_of`.
        rates: see :func:`rates_of`.
    """

    query_id: str
    timestamp: str
    lag: Mapping[MessageQueue, int]
    rates: Mapping[str, float]


class LagHistory(StreamingQueryListener):  # type: ignore[misc]  # pyspark's types are not followed
    """Keeps the last points of all queries of its session; oldest first in :attr:`points`."""

    def __init__(self, *, max_points: int = 10_000) -> None:
        self.points: deque[LagPoint] = deque(maxlen=max_points)

    def add(self, progress: Mapping[str, Any]) -> None:
        """Record one progress; queries without a source of this format are ignored."""
        if waiting := lag_of(progress):
            self.points.append(
                LagPoint(str(progress["id"]), progress["timestamp"], waiting, rates_of(progress))
            )

    def plot(self, path: str | Path, *, query_id: str | None = None) -> None:
        """Write a picture of the lag over time, one line per broker. Needs the extra ``plot``.

        Args:
            path: the file; it is overwritten. The format is its ending, .png or .pdf; otherwise SVG.
            query_id: draw this query only; None: all together.

        Raises:
            ConfigError: there is no point to draw.
            ImportError: matplotlib is not installed.
        """
        points = [point for point in self.points if query_id in (None, point.query_id)]
        if not points:
            raise ConfigError(f"no progress to plot yet{f' of query {query_id}' if query_id else ''}")
        figure = lag_figure(*_series(points), title="messages waiting")
        ending = Path(path).suffix.lower().removeprefix(".")
        figure.savefig(path, format=ending if ending in ("png", "pdf") else "svg")

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:
        """Do nothing."""

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:
        """Record a progress report, also one without a micro-batch."""
        self.add(event.progress)

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:
        """Do nothing."""


def _series(points: Iterable[LagPoint]) -> tuple[list[datetime], dict[str, list[int | None]]]:
    """Return the points' times in order, and each broker's lag at each time.

    At a time at which only one of several queries reports, the others' brokers keep the lag reported before.
    """
    latest: dict[str, dict[str, int]] = {}
    times: list[datetime] = []
    rows: list[dict[str, int]] = []
    for point in sorted(points, key=lambda point: datetime.fromisoformat(point.timestamp)):
        latest.pop(point.query_id, None)  # so that it comes last, and its numbers count
        latest[point.query_id] = _by_broker(point.lag)
        times.append(datetime.fromisoformat(point.timestamp))
        rows.append({broker: count for counts in latest.values() for broker, count in counts.items()})
    brokers = sorted({broker for row in rows for broker in row})
    return times, {broker: [row.get(broker) for row in rows] for broker in brokers}


def _by_broker(waiting: Mapping[MessageQueue, int]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for queue, count in waiting.items():
        sums[queue.broker_name] += count
    return dict(sums)
