"""Blocks of stored messages to Arrow record batches.

The plain messages of a block are decoded together, column by column (``stored``, ``properties``,
``texts``); the others one by one (``rows``); then both are put back into the order of the queue.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow.properties import Properties, PropertyText, cut_properties
from rmqtools.arrow.rows import rows_to_batch, timestamp_column, topic_in
from rmqtools.arrow.schema import MESSAGE_SCHEMA
from rmqtools.arrow.spans import Bytes, Mask, Positions, cut_fixed, cut_spans, is_repeated, repeat_text
from rmqtools.arrow.stored import PlainMessages, find_plain
from rmqtools.arrow.texts import host_column, is_utf8, offset_id_column
from rmqtools.model.block import MessageBlock
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import (
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from rmqtools.protocol.inner_batch import INNER_BATCH, INNER_BATCH_POSITION
from rmqtools.protocol.stored_block import decode_stored


def decode_block(block: MessageBlock, schema: pa.Schema = MESSAGE_SCHEMA) -> pa.RecordBatch:
    """Return the messages of a block as one batch of ``schema``, in the order of ``block.starts``.

    Decode a thousand messages or more at a time: the price of a call is some 300 µs, of a message 2 µs.
    A batch that the broker keeps as one message (of a topic whose queues are of the type BatchCQ) becomes one
    row per message in it, also of those in front of or behind the range that was read.

    Args:
        block: what was read.
        schema: ``MESSAGE_SCHEMA``, or another of :func:`message_schema` or :func:`select_columns`.

    Raises:
        ProtocolError: bytes that are no stored message, or a body that cannot be decompressed (official
            clients hand out such a body as it is stored); the text names queue and queue offset.
    """
    (batch,) = decode_parts(JoinedBlocks((block,)), schema)
    return batch


class JoinedBlocks:
    """Blocks of one topic on one broker, one after the other as if they were one."""

    def __init__(self, blocks: Sequence[MessageBlock]) -> None:
        self._blocks = blocks
        self.queue = blocks[0].queue
        whole = blocks[0].buffer if len(blocks) == 1 else b"".join(block.buffer for block in blocks)
        self.data: Bytes = np.frombuffer(whole, np.uint8)
        begins = accumulate((len(block.buffer) for block in blocks), initial=0)
        parts = [
            np.asarray(block.starts, np.int64) + begin for block, begin in zip(blocks, begins, strict=False)
        ]
        self.starts: Positions = np.concatenate(parts)
        self._ends = list(accumulate(map(len, blocks)))  # by block, the number of rows up to its end

    def hold_inner_batch(self) -> bool:
        """Whether a message holds others. Blocks that ``message_starts`` cut have a flag at every start."""
        flags = self.data[self.starts + INNER_BATCH_POSITION]
        return bool((flags & INNER_BATCH == INNER_BATCH).any())

    def decode(self, row: int) -> list[MessageExt]:
        """The messages stored at a row, one by one."""
        number = bisect_right(self._ends, row)
        block = self._blocks[number]
        return decode_stored(block, block.starts[row - self._ends[number] + len(block)])


def decode_parts(
    joined: JoinedBlocks, schema: pa.Schema = MESSAGE_SCHEMA, *, grown_bytes: float = inf
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of all the blocks, see :func:`decode_block`.

    They are one batch, or several: one ends when the bodies of messages that are decoded one by one, as
    compressed ones are, have grown to more than ``grown_bytes``.
    """
    plain = find_plain(joined.data, joined.starts)
    plain = _with_first_topic(joined.data, plain)
    plain, properties = _with_regular_properties(joined.data, plain)
    batch = _plain_batch(joined, plain, properties, schema)
    if len(plain) == len(joined.starts):
        yield batch
        return
    begin = 0
    for end_row, rows, messages in _one_by_one(joined, plain.rows, grown_bytes):
        end = int(np.searchsorted(plain.rows, end_row))
        others = rows_to_batch(messages, joined.queue, schema)
        yield _merge(batch.slice(begin, end - begin), plain.rows[begin:end], others, rows)
        begin = end


def _with_first_topic(data: Bytes, plain: PlainMessages) -> PlainMessages:
    """Keep messages whose topic is the first one's (in a queue: all), if it is valid text at all."""
    if not len(plain):
        return plain
    first = data[plain.topic.begin[0] : plain.topic.end[0]]
    same: Mask = (plain.topic.end - plain.topic.begin == first.size) & is_utf8(first)
    if not same.all():
        plain = plain.select(same)
    if not len(plain):
        return plain
    topics = cut_fixed(data, plain.topic.begin - 1, 1 + first.size)  # with their length, so never of no bytes
    return plain if is_repeated(topics) else plain.select(topics == topics[0])


def _with_regular_properties(data: Bytes, plain: PlainMessages) -> tuple[PlainMessages, Properties]:
    """Drop messages whose properties are odd; return the properties of the rest."""
    while True:
        found = cut_properties(PropertyText.cut(data, plain.properties))
        if isinstance(found, Properties):
            return plain, found
        assert found.any()
        plain = plain.select(~found)


def _plain_batch(
    joined: JoinedBlocks, plain: PlainMessages, properties: Properties, schema: pa.Schema
) -> pa.RecordBatch:
    head, count, data, queue = plain.head, len(plain), joined.data, joined.queue
    topic = data[plain.topic.begin[0] : plain.topic.end[0]].tobytes().decode() if count else ""
    columns: Mapping[str, Callable[[], Any]] = {
        "topic": lambda: repeat_text(topic_in(queue, topic), count),
        "brokerName": lambda: repeat_text(queue.broker_name, count),
        "queueId": lambda: head["queue_id"].astype(np.int32),
        "queueOffset": lambda: head["queue_offset"].astype(np.int64),
        "body": lambda: cut_spans(data, plain.body, pa.binary()),
        "tags": lambda: properties.value_column(PROPERTY_TAGS),
        "keys": lambda: properties.value_column(PROPERTY_KEYS),
        "properties": lambda: properties.map_column(),
        "msgId": lambda: _msg_id_column(plain, properties),
        "bornTimestamp": lambda: timestamp_column(head["born_timestamp"].astype(np.int64)),
        "storeTimestamp": lambda: timestamp_column(head["store_timestamp"].astype(np.int64)),
        "bornHost": lambda: host_column(head),
        "reconsumeTimes": lambda: head["reconsume_times"].astype(np.int32),
        "sysFlag": lambda: head["sys_flag"].astype(np.int32),
        "flag": lambda: head["flag"].astype(np.int32),
        "offsetMsgId": lambda: offset_id_column(head),
    }
    return pa.record_batch([columns[field.name]() for field in schema], schema=schema)


def _msg_id_column(plain: PlainMessages, properties: Properties) -> pa.Array:
    """The key the producing client made, else the offset id."""
    unique_keys = properties.value_column(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    if unique_keys.null_count == 0:
        return unique_keys
    return pc.coalesce(unique_keys, offset_id_column(plain.head))


def _one_by_one(
    joined: JoinedBlocks, plain_rows: Positions, grown_bytes: float
) -> Iterator[tuple[int, list[int], list[MessageExt]]]:
    """Decode what is not plain, some at a time: messages, the row of each, and the row that is next."""
    is_other = np.ones(len(joined.starts), np.bool_)
    is_other[plain_rows] = False
    rows: list[int] = []
    messages: list[MessageExt] = []
    size = 0
    for row in np.flatnonzero(is_other).tolist():
        if size > grown_bytes:
            yield row, rows, messages
            rows, messages, size = [], [], 0
        found = joined.decode(row)
        rows += [row] * len(found)
        messages += found
        size += sum(len(message.body) for message in found)
    yield len(joined.starts), rows, messages


def _merge(
    plain: pa.RecordBatch, plain_rows: Positions, others: pa.RecordBatch, other_rows: list[int]
) -> pa.RecordBatch:
    """Both in the blocks' order."""
    rows = np.concatenate([plain_rows, np.array(other_rows, np.int64)])
    order = pa.array(np.argsort(rows, kind="stable"))
    table = pa.Table.from_batches([plain, others]).take(order).combine_chunks()
    return table.to_batches()[0] if len(table) else plain
