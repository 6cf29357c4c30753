"""Chooses each row's queue: an explicit one, the queue of its key, the selector's, or any."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow.rows import Rows
from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import Message
from rmqtools.model.queue import MessageQueue
from rmqtools.number_of import number_of
from rmqtools.select import (
    MessageQueueSelector,
    SelectMessageQueueByHash,
    SelectMessageQueueByMachineRoom,
    SelectMessageQueueByRandom,
)

ANY: Final = -1
Codes = npt.NDArray[np.int64]
_BY_KEY: Final = (SelectMessageQueueByHash, SelectMessageQueueByMachineRoom)
_NO_ROW: Final = Message("", b"")  # passed to selectors that use only the key


@dataclass(slots=True)
class RowQueues:
    """Chooses queues for the rows of one topic.

    An explicit queue goes first, then ``selector``; without one, the sharding key (Java's hash). Selectors of
    ``rmqtools.select`` are called once per key (``shardingKey``, else ``keys``), or once per request for rows
    without a key; a random one for all rows. Other selectors are called once per row, with its message and
    key.
    """

    selector: MessageQueueSelector | None = None
    _turn: int = field(default=0, init=False)

    def of_rows(self, rows: Rows, queues: Sequence[MessageQueue]) -> Codes:
        """Return the index in ``queues`` of every row's queue; ``ANY`` if it may go to any queue.

        Raises:
            MessageRejectedError: a row names a queue that does not exist, or its selector returns one.
        """
        codes = np.full(len(rows), ANY, np.int64)
        by_key: MessageQueueSelector = SelectMessageQueueByHash()
        if isinstance(self.selector, _BY_KEY):
            by_key = self.selector
            _fill(codes, self._by_key(rows, "keys", queues, by_key))
        elif self.selector is not None and not self.is_for_requests:
            _fill(codes, self._by_row(rows, queues, self.selector))
        if self.selector is None or isinstance(self.selector, _BY_KEY):
            _fill(codes, self._by_key(rows, "shardingKey", queues, by_key))
        _fill(codes, _explicit(rows, queues))
        return codes

    @property
    def is_for_requests(self) -> bool:
        """True if the selector needs no row."""
        return isinstance(self.selector, SelectMessageQueueByRandom)

    def of_request(self, queues: Sequence[MessageQueue]) -> tuple[MessageQueue | None, bool]:
        """Return the queue for a request of rows for any queue, and whether it may move after a failure."""
        self._turn += 1
        if self.selector is not None and self.is_for_requests:
            return self.selector(queues, _NO_ROW, self._turn), True
        if isinstance(self.selector, SelectMessageQueueByMachineRoom):
            return self.selector(queues, _NO_ROW, self._turn), False
        return None, True

    def needs_queues(self, rows: Rows) -> bool:
        """Return whether the queues must be known before the rows are sent."""
        named = ("shardingKey", "brokerName")
        return self.selector is not None or any(rows.column(name) is not None for name in named)

    def _by_key(
        self, rows: Rows, column: str, queues: Sequence[MessageQueue], selector: MessageQueueSelector
    ) -> Codes:
        if (keys := rows.column(column)) is None:
            return np.full(len(rows), ANY, np.int64)
        encoded = keys.dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        by_key = [queues.index(selector(queues, _NO_ROW, key)) if key else ANY for key in distinct]
        places = np.asarray(pc.fill_null(encoded.indices, len(distinct)))
        codes: Codes = np.array([*by_key, ANY], np.int64)[places]
        return codes

    def _by_row(self, rows: Rows, queues: Sequence[MessageQueue], selector: MessageQueueSelector) -> Codes:
        codes = np.full(len(rows), ANY, np.int64)
        for row in range(len(rows)):
            message = rows.message(row)
            chosen = selector(queues, message, message.sharding_key or message.keys_text)
            codes[row] = _place_of(chosen, queues, rows.number(row))
        return codes


def _explicit(rows: Rows, queues: Sequence[MessageQueue]) -> Codes:
    """Find the queues of ``brokerName`` and ``queueId``; each distinct pair is looked up once."""
    codes = np.full(len(rows), ANY, np.int64)
    if (names := rows.column("brokerName")) is None:
        return codes
    ids = np.asarray(pc.fill_null(rows.columns.column("queueId"), 0)).astype(np.int64)
    brokers = np.asarray(pc.fill_null(names.dictionary_encode().indices, 0)).astype(np.int64)
    named = np.flatnonzero(names.is_valid())
    pairs = (brokers << 32 | ids & 0xFFFF_FFFF)[named]
    _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    found = []
    for row in named[first].tolist():
        queue = MessageQueue(queues[0].topic, names[row].as_py(), int(ids[row]))
        found.append(_place_of(queue, queues, rows.number(row)))
    codes[named] = np.array(found, np.int64)[inverse]
    return codes


def _place_of(queue: MessageQueue, queues: Sequence[MessageQueue], row: int) -> int:
    if queue not in queues:
        raise MessageRejectedError(
            f"row {row}: {queue} is not among the {number_of(len(queues), 'queue')} to send to"
        )
    return queues.index(queue)


def _fill(codes: Codes, more: Codes) -> None:
    codes[more != ANY] = more[more != ANY]


def column_codes(column: pa.Array) -> tuple[Codes, list[str]]:
    """Return the index of every value among the distinct values, and the distinct values."""
    encoded = column.dictionary_encode()
    return np.asarray(encoded.indices).astype(np.int64), encoded.dictionary.to_pylist()
