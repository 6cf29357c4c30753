"""The options of streaming reads alone; what batches have too is in :mod:`spark_connector.options_read`."""

import re
from typing import Final

from spark_connector.option import Option, Where, parse_count, parse_flag

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_TIME: Final = "a time such as 500ms, 30s, 15m, 1h; a bare number is milliseconds"


def parse_time(text: str) -> float:
    """A length of time, in seconds.

    Source of the rule: JavaUtils.timeStringAs (Spark).
    """
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if found is None or (unit := found[2] or "ms") not in _SECONDS:
        raise ValueError("it is no time")
    return int(found[1]) * _SECONDS[unit]


STREAM_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "maxOffsetsPerTrigger",
        "a whole number",
        parse_count,
        None,
        "At most so many offsets per micro-batch, shared among queues in proportion to what waits in them; "
        "at least one of each queue that has any.",
        Where.STREAM,
    ),
    Option(
        "maxBytesPerTrigger",
        "a whole number",
        parse_count,
        None,
        "About so many bytes of stored messages per micro-batch, estimated from the sizes of some that wait. "
        "At least one message of each queue that has any.",
        Where.STREAM,
    ),
    Option(
        "minOffsetsPerTrigger",
        "a whole number",
        parse_count,
        None,
        "Start no micro-batch for less, until maxTriggerDelay is over. Trigger.AvailableNow does not wait.",
        Where.STREAM,
    ),
    Option(
        "maxTriggerDelay",
        _TIME,
        parse_time,
        "15m",
        "With minOffsetsPerTrigger: how long after a micro-batch the next one starts with whatever there is.",
        Where.STREAM,
    ),
    Option(
        "pollInterval",
        _TIME,
        parse_time,
        "1s",
        "How often a query that has nothing to do asks the brokers for new messages, and for new queues.",
        Where.STREAM,
    ),
    Option(
        "commitOffsetsToGroup",
        "true or false",
        parse_flag,
        "false",
        "Whether the consumer group of option group is told how far the query is, for tools that show lag. "
        "The group is made if it is missing; it must have no live members. The query itself never reads it.",
        Where.STREAM,
    ),
)
