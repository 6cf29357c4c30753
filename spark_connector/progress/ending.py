"""Stops a streaming query at its ending offsets, based on Spark's progress reports."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import ConfigError
from spark_connector.read.spark_version import require_reported_offsets
from spark_connector.read.stream_offsets import offsets_of_progress

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

_LOOK_EVERY: Final = 0.2  # seconds


def stop_at_end(query: "StreamingQuery", *, timeout: float | None = None) -> bool:
    """Wait until a query has read everything up to its ending offsets or time, then stop it without an error.

    The query needs one of ``endingOffsets``, ``endingTimestamp`` and ``endingOffsetsByTimestamp``. Its last
    micro-batch is committed before the stop, so a restarted query continues, or ends, there.

    Args:
        query: a query with any trigger; if it ends by itself, this function waits for that.
        timeout: seconds to wait; None: no limit.

    Returns:
        Whether the query reached its end; False: the timeout has passed, and the query runs on.

    Raises:
        ConfigError: the query has no end, or PySpark is older than 4.2.
        StreamingQueryException: the query failed.
    """
    require_reported_offsets("spark_connector.stop_at_end")
    deadline = None if timeout is None else SYSTEM_CLOCK.monotonic() + timeout
    while not query.awaitTermination(_LOOK_EVERY):
        progress = query.lastProgress
        if progress is not None and is_at_end(progress):
            query.stop()
            return True
        if deadline is not None and SYSTEM_CLOCK.monotonic() >= deadline:
            return False
    return True


def is_at_end(progress: Mapping[str, Any]) -> bool:
    """Return whether a query has read everything up to its end.

    Raises:
        ConfigError: it has no end.
    """
    ends = []
    for source in progress["sources"]:
        end, latest = offsets_of_progress(source["endOffset"]), offsets_of_progress(source["latestOffset"])
        if end is None or latest is None:
            continue
        final = _tree(source["latestOffset"]).get("final")
        if final is None:
            raise ConfigError(
                "the query has no end: set option 'endingOffsets' or 'endingTimestamp' of its source, or "
                "stop it by query.stop()"
            )
        ends.append(final and all(end.next.get(queue, 0) >= at for queue, at in latest.next.items()))
    return bool(ends) and all(ends)


def _tree(given: Any) -> Any:
    return json.loads(given) if isinstance(given, str) else given
