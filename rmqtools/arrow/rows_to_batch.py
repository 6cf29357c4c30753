"""Makes a record batch of decoded messages, value by value: for messages that are not plain."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rmqtools.arrow.schema import MESSAGE_SCHEMA, TIMESTAMP
from rmqtools.arrow.spans import number_array
from rmqtools.errors import BodyTooLargeError
from rmqtools.model.message import MessageExt
from rmqtools.model.names import without_namespace
from rmqtools.model.queue import MessageQueue

# Beyond these milliseconds, microseconds do not fit into 64 bits.
_LAST_MS = (2**63 - 1) // 1000
_MOST_BINARY_BYTES = 2**31 - 2  # of a column; its offsets have 32 bits


def rows_to_batch(
    messages: Sequence[MessageExt], queue: MessageQueue, schema: pa.Schema = MESSAGE_SCHEMA
) -> pa.RecordBatch:
    """Return messages of a queue as one batch of ``schema``."""
    rows = [_row(message, queue) for message in messages]
    arrays = [_array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.record_batch(arrays, schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if kind == TIMESTAMP:
        return timestamp_column(np.array(values, np.int64))
    return _binary_array(values) if pa.types.is_binary(kind) else pa.array(values, kind)


def _binary_array(values: Sequence[bytes | None]) -> pa.Array:
    """Like ``pa.array``, which needs three times the memory of large bodies; one body is not even copied."""
    found = [value or b"" for value in values]
    if sum(map(len, found)) > _MOST_BINARY_BYTES:
        return pa.array(values, pa.binary())  # which refuses them
    data = found[0] if len(found) == 1 else b"".join(found)
    ends = np.cumsum([0, *map(len, found)], dtype=np.int32)
    is_there = None if None not in values else pa.array([value is not None for value in values]).buffers()[1]
    buffers = [is_there, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(found), buffers)


def _row(message: MessageExt, queue: MessageQueue) -> dict[str, object]:
    return {
        "topic": topic_in(queue, message.topic),
        "brokerName": queue.broker_name,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "body": body_or_none(message),
        "tags": message.tags,
        "keys": message.keys,
        "properties": list(message.properties.items()),
        "msgId": message.msg_id,
        "bornTimestamp": message.born_timestamp_ms,
        "storeTimestamp": message.store_timestamp_ms,
        "bornHost": message.born_host,
        "reconsumeTimes": message.reconsume_times,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "offsetMsgId": message.offset_msg_id,
    }


def body_or_none(message: MessageExt) -> bytes | None:
    """Return the body of a message; None where it cannot be read.

    Raises:
        BodyTooLargeError: the reader's setting refuses it.
    """
    error = message.body_error
    if isinstance(error, BodyTooLargeError):
        raise error
    return message.body if error is None else None


def topic_in(queue: MessageQueue, stored: str) -> str:
    """Return a message's topic as its reader names it: without the stored namespace.

    Source of the rule: DefaultMQPullConsumerImpl.resetTopic (Java client).
    """
    return queue.topic if without_namespace(stored) == queue.topic else stored


def timestamp_column(milliseconds: npt.NDArray[np.int64]) -> pa.Array:
    """Return times in microseconds; null for those that do not fit into 64 bits (producers set any value)."""
    too_far = (milliseconds > _LAST_MS) | (milliseconds < -_LAST_MS)
    microseconds = np.where(too_far, 0, milliseconds) * 1000
    return number_array(microseconds, too_far).view(TIMESTAMP)
