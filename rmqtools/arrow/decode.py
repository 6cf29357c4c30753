"""Decodes blocks of stored messages to Arrow record batches.

The plain messages of a block are decoded together, column by column (``stored``, ``properties``,
``texts``); the others one by one (``rows``); then both are put back into the order of the queue.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from math import inf
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow.properties import Properties, PropertyText, cut_properties
from rmqtools.arrow.rows_to_batch import body_or_none, rows_to_batch, timestamp_column
from rmqtools.arrow.schema import MESSAGE_SCHEMA
from rmqtools.arrow.spans import (
    Bytes,
    Mask,
    Positions,
    cut_fixed,
    cut_spans,
    is_repeated,
    number_array,
    repeat_text,
)
from rmqtools.arrow.stored import COMPRESSED, PlainMessages, find_plain
from rmqtools.arrow.texts import host_column, is_utf8, offset_id_column
from rmqtools.config.text import check_choice
from rmqtools.errors import ProtocolError
from rmqtools.log import get_logger
from rmqtools.model.block import CORRUPT_BODY_CHOICES, CorruptBody, MessageBlock
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import (
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from rmqtools.model.queue import MessageQueue
from rmqtools.model.read_columns import topic_in
from rmqtools.protocol.messages.inner_batch import INNER_BATCH, INNER_BATCH_POSITION
from rmqtools.protocol.messages.stored_block import decode_bodiless, decode_stored

log = get_logger(__name__)

_GROWN_ROWS = 8192  # of messages decoded one by one: stored batches hold many


def decode_block(
    block: MessageBlock, schema: pa.Schema = MESSAGE_SCHEMA, *, corrupt_body: CorruptBody = "fail"
) -> pa.RecordBatch:
    """Return the messages of a block as one batch of ``schema``, in the order of ``block.starts``.

    Decode a thousand messages or more at a time: a call costs about 300 µs, a message 2 µs. Bodies are not
    decompressed if ``schema`` has no column ``body``; then a body that cannot be decompressed is not noticed.
    A batch that the broker stores as one message (in a topic with queues of type BatchCQ) becomes one row per
    message in it, including messages before or after the range that was read.

    Args:
        block: the block that was read.
        schema: ``MESSAGE_SCHEMA``, or another of :func:`message_schema` or :func:`select_columns`.
        corrupt_body: handling of a body that cannot be decompressed: ``fail`` raises, ``raw`` gives
            the bytes as they are stored (official clients do), ``null`` gives null. With both, bytes that
            are not a stored message are skipped and logged.

    Raises:
        ConfigError: ``corrupt_body`` is none of these.
        CorruptBodyError: a body that cannot be decompressed; the text names queue and queue offset.
        ProtocolError: bytes that are no stored message; the text names queue and queue offset.
    """
    check_choice("corrupt_body", corrupt_body, CORRUPT_BODY_CHOICES)
    (batch,) = decode_parts(JoinedBlocks((block,)), schema, corrupt_body=corrupt_body)
    return batch


class StoredRows(Protocol):
    """Messages as they are stored, of one topic on one broker."""

    @property
    def queue(self) -> MessageQueue:
        """Of the first message."""

    @property
    def data(self) -> Bytes:
        """The messages; possibly without their bodies."""

    @property
    def starts(self) -> Positions:
        """Begin of each message in ``data``."""

    def body_column(self, plain: PlainMessages) -> pa.Array:
        """Build the bodies of the plain messages, which were found in ``data``."""

    def decode(self, row: int, corrupt_body: CorruptBody, *, with_bodies: bool = True) -> list[MessageExt]:
        """Decode the messages stored at a row, one by one; without bodies, these stay as they are stored."""


class JoinedBlocks:
    """Several blocks of one topic on one broker, used like one block.

    Attributes:
        queue: of the first block.
        data: the messages of all blocks.
        starts: where they begin in ``data``.
    """

    def __init__(self, blocks: Sequence[MessageBlock]) -> None:
        self._blocks = blocks
        self.queue = blocks[0].queue
        self._ends = list(accumulate(map(len, blocks)))  # by block, the number of rows up to its end
        whole = blocks[0].buffer if len(blocks) == 1 else b"".join(block.buffer for block in blocks)
        self.data: Bytes = np.frombuffer(whole, np.uint8)
        begins = accumulate((len(block.buffer) for block in blocks), initial=0)
        parts = [
            np.asarray(block.starts, np.int64) + begin for block, begin in zip(blocks, begins, strict=False)
        ]
        self.starts: Positions = np.concatenate(parts)

    def hold_inner_batch(self) -> bool:
        """Return whether a message contains others. ``message_starts`` has a flag at each start."""
        flags = self.data[self.starts + INNER_BATCH_POSITION]
        return bool((flags & INNER_BATCH == INNER_BATCH).any())

    def body_column(self, plain: PlainMessages) -> pa.Array:
        """See :class:`StoredRows`."""
        return cut_spans(self.data, plain.body, pa.binary())

    def decode(self, row: int, corrupt_body: CorruptBody, *, with_bodies: bool = True) -> list[MessageExt]:
        """See :class:`StoredRows`."""
        number = bisect_right(self._ends, row)
        block = self._blocks[number]
        start = block.starts[row - self._ends[number] + len(block)]
        try:
            decode = decode_stored if with_bodies else decode_bodiless
            return decode(block, start, corrupt_body=corrupt_body)
        except ProtocolError as error:
            if corrupt_body == "fail":
                raise
            log.warning("message_passed_over", reason=str(error))
            return []


def decode_parts(
    joined: StoredRows,
    schema: pa.Schema = MESSAGE_SCHEMA,
    *,
    grown_bytes: float = inf,
    corrupt_body: CorruptBody = "fail",
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of all the blocks, see :func:`decode_block`.

    Yields one batch or several. A batch ends when the bodies of messages that are decoded one by one, such
    as compressed ones, exceed ``grown_bytes``, or if there are more than 8192 of them.
    """
    with_bodies = "body" in schema.names
    plain = find_plain(joined.data, joined.starts, with_bodies=with_bodies)
    plain = _with_first_topic(joined.data, plain)
    plain, properties = _with_regular_properties(joined.data, plain)
    batch = _plain_batch(joined, plain, properties, schema)
    if len(plain) == len(joined.starts):
        yield batch
        return
    begin, decode = 0, partial(joined.decode, corrupt_body=corrupt_body, with_bodies=with_bodies)
    for end_row, rows, messages in _one_by_one(joined, plain.rows, grown_bytes, decode):
        end = int(np.searchsorted(plain.rows, end_row))
        others = rows_to_batch(messages, joined.queue, schema)
        messages.clear()  # their bodies may be large
        if begin == end:
            yield others
        else:
            yield _merge(batch.slice(begin, end - begin), plain.rows[begin:end], others, rows)
        del others
        begin = end


def _with_first_topic(data: Bytes, plain: PlainMessages) -> PlainMessages:
    """Keep messages with the topic of the first one (in a queue: all), if it is valid UTF-8."""
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
    """Drop messages with odd properties; return the properties of the others."""
    while True:
        found = cut_properties(PropertyText.cut(data, plain.properties))
        if isinstance(found, Properties):
            return plain, found
        assert found.any()
        plain = plain.select(~found)


def _plain_batch(
    joined: StoredRows, plain: PlainMessages, properties: Properties, schema: pa.Schema
) -> pa.RecordBatch:
    head = plain.head
    count = len(plain)
    data = joined.data
    queue = joined.queue
    topic = data[plain.topic.begin[0] : plain.topic.end[0]].tobytes().decode() if count else ""
    columns: Mapping[str, Callable[[], pa.Array]] = {
        "topic": lambda: repeat_text(topic_in(queue, topic), count),
        "brokerName": lambda: repeat_text(queue.broker_name, count),
        "queueId": lambda: number_array(head["queue_id"].astype(np.int32)),
        "queueOffset": lambda: number_array(head["queue_offset"].astype(np.int64)),
        "body": lambda: joined.body_column(plain),
        "tags": lambda: properties.value_column(PROPERTY_TAGS),
        "keys": lambda: properties.value_column(PROPERTY_KEYS),
        "properties": lambda: properties.map_column(),
        "msgId": lambda: _msg_id_column(plain, properties),
        "bornTimestamp": lambda: timestamp_column(head["born_timestamp"].astype(np.int64)),
        "storeTimestamp": lambda: timestamp_column(head["store_timestamp"].astype(np.int64)),
        "bornHost": lambda: host_column(head),
        "reconsumeTimes": lambda: number_array(head["reconsume_times"].astype(np.int32)),
        "sysFlag": lambda: number_array(_sys_flags(head)),
        "flag": lambda: number_array(head["flag"].astype(np.int32)),
        "offsetMsgId": lambda: offset_id_column(head),
    }
    return pa.record_batch([columns[field.name]() for field in schema], schema=schema)


def _sys_flags(head: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Return the flags after decompression; bodies of no bytes are not decompressed."""
    flags: npt.NDArray[np.int32] = head["sys_flag"].astype(np.int32)
    return np.where(head["body_length"] > 0, flags & ~COMPRESSED, flags)


def _msg_id_column(plain: PlainMessages, properties: Properties) -> pa.Array:
    """Return the key made by the producing client, else the offset id."""
    unique_keys = properties.value_column(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    if unique_keys.null_count == 0:
        return unique_keys
    return pc.coalesce(unique_keys, offset_id_column(plain.head))


def _one_by_one(
    joined: StoredRows,
    plain_rows: Positions,
    grown_bytes: float,
    decode: Callable[[int], list[MessageExt]],
) -> Iterator[tuple[int, list[int], list[MessageExt]]]:
    """Decode messages that are not plain, in groups: the next row, the row of each message, the messages."""
    is_other = np.ones(len(joined.starts), np.bool_)
    is_other[plain_rows] = False
    rows: list[int] = []
    messages: list[MessageExt] = []
    size = 0
    for row in np.flatnonzero(is_other).tolist():
        if size > grown_bytes or (len(messages) > _GROWN_ROWS and grown_bytes != inf):
            yield row, rows, messages
            rows, messages, size = [], [], 0
        found = decode(row)
        rows += [row] * len(found)
        messages += found
        size += sum(map(_body_bytes, found))
        del found  # the bodies may be large, and the groups are cleared by who gets them
    yield len(joined.starts), rows, messages


def _body_bytes(message: MessageExt) -> int:
    return len(body_or_none(message) or b"")


def _merge(
    plain: pa.RecordBatch, plain_rows: Positions, others: pa.RecordBatch, other_rows: list[int]
) -> pa.RecordBatch:
    """Join both kinds of messages in the blocks' order."""
    rows = np.concatenate([plain_rows, np.array(other_rows, np.int64)])
    order = number_array(np.argsort(rows, kind="stable"))
    table = pa.Table.from_batches([plain, others]).take(order).combine_chunks()
    return table.to_batches()[0] if len(table) else plain
