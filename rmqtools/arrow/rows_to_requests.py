"""Divides rows into batches: requests with rows of one topic, for one queue or for any."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow.check_rows import check_rows
from rmqtools.arrow.encode_rows import EncodedRows, encode_rows
from rmqtools.arrow.queue_choice import ANY, Codes, RowQueues, column_codes
from rmqtools.arrow.rows import Rows
from rmqtools.arrow.spans import Mask
from rmqtools.model.encoded_batch import EncodedBatch, MsgIds
from rmqtools.model.queue import MessageQueue

if TYPE_CHECKING:
    from rmqtools.sync.producer import Producer


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows ``[begin, end)``, of one topic and for one queue or any."""

    begin: int
    end: int
    topic: str
    queues: Sequence[MessageQueue]
    queue: MessageQueue | None


def encode_batches(producer: "Producer", rows: Rows, choice: RowQueues) -> list[EncodedBatch]:
    """Check rows, encode them, and cut them into batches of at most ``max_batch_bytes``.

    Batches of one queue are in the order of the rows. Rows with a delay and larger rows are alone, as
    messages.

    Raises:
        MessageRejectedError: a row cannot be sent; the text has its number.
        TopicNotFoundError, PermissionDeniedError, RemotingConnectError: there is no queue to send to.
    """
    config = producer.config
    properties = check_rows(rows, config.max_message_bytes)
    order, groups = _group(producer, rows, choice)
    if order is not None:
        rows, properties = rows.take(order), properties.take(order)
    msg_ids = producer._encoded_sends.reserve_msg_ids(len(rows))
    cut = _Cut(rows, encode_rows(rows, properties, msg_ids), msg_ids, config.max_batch_bytes)
    by_group = [[cut.batch(group, part, choice) for part in cut.parts(group)] for group in groups]
    return [batch for batch in chain.from_iterable(zip_longest(*by_group)) if batch is not None]


def _group(producer: "Producer", rows: Rows, choice: RowQueues) -> tuple[pa.Array | None, list[_Group]]:
    """Return the order of the rows by topic and queue (None: unchanged), and the groups in that order."""
    topics, names = _topics(rows)
    if not choice.needs_queues(rows):
        return _sorted_groups(topics, [(name, (), None) for name in names])
    codes = np.zeros(len(rows), np.int64)
    targets: list[tuple[str, Sequence[MessageQueue], MessageQueue | None]] = []
    for number, name in enumerate(names):
        here = np.flatnonzero(topics == number)
        queues = producer.fetch_publish_queues(name)
        part = rows if len(names) == 1 else rows.take(pa.array(here))
        codes[here] = choice.of_rows(part, queues) - ANY + len(targets)
        targets += [(name, queues, None), *((name, queues, queue) for queue in queues)]
    return _sorted_groups(codes, targets)


def _topics(rows: Rows) -> tuple[Codes, list[str]]:
    if rows.topic is not None:
        return np.zeros(len(rows), np.int64), [rows.topic]
    return column_codes(rows.columns.column("topic"))


def _sorted_groups(
    codes: Codes, targets: Sequence[tuple[str, Sequence[MessageQueue], MessageQueue | None]]
) -> tuple[pa.Array | None, list[_Group]]:
    order = np.argsort(codes, kind="stable")
    distinct, begins = np.unique(codes[order], return_index=True)
    bounds = [*begins.tolist(), len(codes)]
    groups = [
        _Group(bounds[place], bounds[place + 1], *targets[code])
        for place, code in enumerate(distinct.tolist())
    ]
    return (None if len(groups) == 1 else pa.array(order)), groups


class _Cut:
    """Encoded rows in the order of their groups, which are cut into batches."""

    def __init__(self, rows: Rows, encoded: EncodedRows, msg_ids: MsgIds, max_bytes: int) -> None:
        self._rows = rows
        self._encoded = encoded
        self._msg_ids = msg_ids
        self._max_bytes = max_bytes  # added as a Python number, because offsets have 32 bits
        self._alone = _alone(rows, encoded, max_bytes)

    def parts(self, group: _Group) -> Iterator[tuple[int, int]]:
        """Yield the rows ``[begin, end)`` of each batch."""
        stops = [*(np.flatnonzero(self._alone[group.begin : group.end]) + group.begin).tolist(), group.end]
        begin = group.begin
        for stop in stops:
            while begin < stop:
                yield begin, (begin := min(stop, max(begin + 1, self._last_end(begin))))
            if begin < group.end:
                yield begin, (begin := begin + 1)

    def _last_end(self, begin: int) -> int:
        """Return the end of the rows from ``begin`` on that fit into one request."""
        offsets = self._encoded.offsets
        limit = min(int(offsets[begin]) + self._max_bytes, int(offsets[-1]))
        return int(np.searchsorted(offsets, np.int32(limit), "right")) - 1

    def batch(self, group: _Group, part: tuple[int, int], choice: RowQueues) -> EncodedBatch:
        """Make a batch of the rows of a part."""
        begin, end = part
        queue, may_move = (group.queue, False) if group.queue else choice.of_request(group.queues)
        if self._alone[begin]:
            message = self._rows.message(begin)
            return EncodedBatch(topic=group.topic, message=message, queue=queue, may_move=may_move)
        return EncodedBatch(
            topic=group.topic,
            body=self._encoded.slice(begin, end),
            msg_ids=self._msg_ids[begin:end],
            queue=queue,
            may_move=may_move,
        )


def _alone(rows: Rows, encoded: EncodedRows, max_bytes: int) -> Mask:
    """Return the rows that cannot be in a batch: with a delay, or too large."""
    found: Mask = np.diff(encoded.offsets) > max_bytes
    for name in ("delayLevel", "deliverTimestamp"):
        if (column := rows.column(name)) is not None:
            found |= np.asarray(pc.fill_null(pc.not_equal(column.cast(pa.int64()), 0), False))
    return found
