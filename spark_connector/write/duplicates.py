"""Drops messages that a write stored twice, by their stamps."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from spark_connector.write.stamps import HASH, STAMP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEYS: Final = ("__place", "__hash")
_READ_AT: Final = "__read_at"


def drop_duplicates(frame: "DataFrame", *, within: str = "1 hour") -> "DataFrame":
    """Keep one of the messages that are the same row of the same write; keep all messages without a stamp.

    Two messages are the same row if topic, stamp and hash are equal; see :mod:`spark_connector.write.stamps`.
    Rows that moved in a second attempt, because the input is not deterministic, stay twice; no row is lost.

    Args:
        frame: as loaded by ``format("rocketmq")``: call this before dropping or renaming columns, and before
            setting a watermark of your own.
        within: for streams: how long a message is remembered after it was read, and so how much later its
            copy may be read. Bounds the state. It counts the time of reading, so no message is late.
    """
    stamp = F.col("properties").getItem(STAMP)
    own = F.concat_ws("/", F.lit(""), "brokerName", F.col("queueId"), F.col("queueOffset"))
    keyed = frame.withColumns(
        {
            _KEYS[0]: F.concat_ws("/", "topic", F.coalesce(stamp, own)),
            _KEYS[1]: F.coalesce(F.col("properties").getItem(HASH), F.lit("")),
        }
    )
    if not frame.isStreaming:
        return keyed.dropDuplicates(list(_KEYS)).drop(*_KEYS)
    timed = keyed.withColumn(_READ_AT, F.current_timestamp()).withWatermark(_READ_AT, within)
    return timed.dropDuplicatesWithinWatermark(list(_KEYS)).drop(*_KEYS, _READ_AT)
