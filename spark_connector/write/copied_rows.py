"""Turns rows that were read into rows that can be written, without parts that brokers and clients set.

    part of a row that was read                            in the copy
    body, tags, keys                                       as read
    properties that users may set                          as read
    properties of brokers and clients (RESERVED)           left out: they describe the message that was read
    property __SHARDINGKEY                                 the sharding key, unless there is a column of it
    topic                                                  as read, unless the option topic names another
    brokerName, queueId                                    left out; with keepQueue the queue of the copy
    queueOffset, msgId, offsetMsgId, bornTimestamp,
      storeTimestamp, bornHost, reconsumeTimes, sysFlag,
      flag                                                 left out: set by broker and client

A frame counts as read if it has a column ``queueOffset``. Messages: ``rmqtools.model.copy_message``.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools import MessageQueue, Producer
from rmqtools.errors import ConfigError
from rmqtools.model.copy_message import SYSTEM_PROPERTIES
from rmqtools.model.message_const import PROPERTY_SHARDING_KEY
from rmqtools.model.names import can_be_sent_to
from spark_connector.options.queue_json import places
from spark_connector.write.stamps import HASH, STAMP

_SHARDING_COLUMN: Final = "shardingKey"
_STAMPS: Final = frozenset({STAMP, HASH})


def copied_rows(batch: pa.RecordBatch, *, new_stamps: bool = False) -> pa.RecordBatch:
    """Remove the properties set by brokers and clients; the sharding key becomes a column.

    Args:
        batch: rows that were read.
        new_stamps: whether the rows get new stamps, so that their old ones are removed too.
    """
    if "properties" not in batch.schema.names:
        return batch
    place = batch.schema.get_field_index("properties")
    properties = batch.column(place)
    if _SHARDING_COLUMN not in batch.schema.names:
        sharding_keys = values_of(properties, PROPERTY_SHARDING_KEY)
        if sharding_keys.null_count < len(sharding_keys):
            batch = batch.append_column(_SHARDING_COLUMN, sharding_keys)
    left = without_properties(properties, SYSTEM_PROPERTIES | _STAMPS if new_stamps else SYSTEM_PROPERTIES)
    return batch.set_column(place, pa.field("properties", left.type), left)


def without_properties(column: pa.MapArray, names: Collection[str]) -> pa.MapArray:
    """Return the same maps without the entries ``names``."""
    bounds, keys, items = _entries(column)
    stays = pc.invert(pc.is_in(keys, pa.array(sorted(names), keys.type)))
    counts = np.concatenate([[0], np.cumsum(np.asarray(stays), dtype=np.int32)]).astype(np.int32)
    missing = column.is_null() if column.null_count else None
    return pa.MapArray.from_arrays(
        pa.array(counts[bounds]), keys.filter(stays), items.filter(stays), mask=missing
    )


def values_of(column: pa.MapArray, name: str) -> pa.Array:
    """Return the value of each map under a name; null if it has none."""
    bounds, keys, items = _entries(column)
    found = np.flatnonzero(np.asarray(pc.fill_null(pc.equal(keys, name), False)))
    taken = np.full(len(column), -1, np.int64)
    taken[np.searchsorted(bounds, found, side="right") - 1] = found
    return items.take(pa.array(taken, mask=taken < 0))


def check_queues(
    batches: Iterable[pa.RecordBatch], producer: Producer, topic: str | None
) -> Iterator[pa.RecordBatch]:
    """Pass on batches whose queues exist; the first batch is checked before any is sent.

    Args:
        batches: rows that were read, with ``brokerName`` and ``queueId``.
        producer: fetches the queues.
        topic: topic of all rows; None: each row's own column.

    Raises:
        ConfigError: a queue does not exist; the rows of its batch have not been sent.
    """
    known: dict[str, frozenset[MessageQueue]] = {}
    for batch in batches:
        wanted = _queues_of(batch, topic)
        for name in {queue.topic for queue in wanted} - known.keys():
            known[name] = frozenset(producer.fetch_publish_queues(name))
        if missing := [queue for queue in wanted if queue not in known[queue.topic]]:
            present = known[missing[0].topic]
            raise ConfigError(
                f"option 'keepQueue': {places(missing)} does not exist among {places(present)}: give the "
                "topic the queues of the one that was read, or leave the option out"
            )
        yield batch


def _queues_of(batch: pa.RecordBatch, topic: str | None) -> list[MessageQueue]:
    """Return the distinct queues of the rows, without those whose topic nothing can be sent to."""
    names = ["brokerName", "queueId"] if topic is not None else ["topic", "brokerName", "queueId"]
    distinct = pa.Table.from_batches([batch.select(names)]).drop_null().group_by(names).aggregate([])
    found = [
        MessageQueue(topic or row["topic"], row["brokerName"], row["queueId"]) for row in distinct.to_pylist()
    ]
    return [queue for queue in found if can_be_sent_to(queue.topic)]


def _entries(column: pa.MapArray) -> tuple[npt.NDArray[np.int64], pa.Array, pa.Array]:
    """Begin and end of each map's entries, all keys, all values; null maps have no entries."""
    bounds = np.asarray(column.offsets).astype(np.int64)
    first, count = int(bounds[0]), int(bounds[-1] - bounds[0])
    return bounds - first, column.keys.slice(first, count), column.items.slice(first, count)
