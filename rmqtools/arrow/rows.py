"""Rows of record batches to send: checks their columns, and makes a Message for rows that need one."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rmqtools.arrow.canonical import canonical_batches
from rmqtools.arrow.schema import TIMESTAMP, WRITE_COLUMNS
from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import Message

_US_PER_MS = 1000
_TIME = "deliverTimestamp"
_SHOWN_BYTES = 64  # of invalid UTF-8, in errors


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to send.

    Attributes:
        columns: some of ``WRITE_COLUMNS``; the body as binary.
        topic: the topic of all rows; None: the column ``topic``.
        first_row: the number of the first row, for errors.
        extra: more properties by name, a text for every row.
        taken: the indexes of these rows among the original ones; None: all, in order.
    """

    columns: pa.RecordBatch
    topic: str | None = None
    first_row: int = 0
    extra: dict[str, pa.Array] = field(default_factory=dict)
    taken: pa.Array | None = None

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def column(self, name: str) -> pa.Array | None:
        """Return a column; None if it is missing or has only nulls."""
        if name not in self.columns.schema.names:
            return None
        column = self.columns.column(name)
        return None if column.null_count == len(column) else column

    def take(self, rows: pa.Array) -> "Rows":
        """Return some of the rows, in the order of ``rows``. They keep their numbers."""
        extra = {name: column.take(rows) for name, column in self.extra.items()}
        taken = rows if self.taken is None else self.taken.take(rows)
        return Rows(self.columns.take(rows), self.topic, self.first_row, extra, taken)

    def number(self, row: int) -> int:
        """Return a row's number for errors."""
        return self.first_row + int(row if self.taken is None else self.taken[row].as_py())

    def value(self, name: str, row: int) -> Any:
        """Return one value of a column.

        Raises:
            MessageRejectedError: a text has invalid UTF-8.
        """
        return _value(f"column {name!r}", self.columns.column(name), row)

    def message(self, row: int) -> Message:
        """Return one row as a message.

        Raises:
            MessageRejectedError: no body, no topic, a property without value, or invalid UTF-8.
        """
        values = {name: self.value(name, row) for name in self.columns.schema.names if name != _TIME}
        topic = self.topic if self.topic is not None else values.get("topic")
        if values["body"] is None or topic is None:
            what = "topic" if values["body"] is not None else "body"
            raise MessageRejectedError(f"{what} is null: fill it, or drop the row")
        properties = _property_map(values.get("properties"))
        properties |= {name: _value(f"property {name!r}", column, row) for name, column in self.extra.items()}
        return Message(
            topic,
            values["body"],
            values.get("tags"),
            values.get("keys") or (),
            properties,
            sharding_key=values.get("shardingKey"),
            delay_level=values.get("delayLevel") or 0,
            deliver_at_ms=self._deliver_at_ms(row),
        )

    def _deliver_at_ms(self, row: int) -> int | None:
        """Compute it from the number, because a datetime ends with the year 9999."""
        column = self.column(_TIME)
        microseconds = None if column is None else column[row].cast(pa.int64()).as_py()
        return None if microseconds is None else microseconds // _US_PER_MS


def rows_of(
    batch: pa.RecordBatch,
    *,
    topic: str | None = None,
    first_row: int = 0,
    extra: dict[str, pa.Array] | None = None,
) -> Rows:
    """Make rows of a batch with canonical columns.

    Raises:
        MessageRejectedError: a column is unknown, of a wrong type, missing, or there twice.
    """
    check_columns(batch.schema, topic)
    columns = {name: batch.column(name) for name in batch.schema.names if name != "topic" or topic is None}
    columns["body"] = columns["body"].cast(pa.binary())
    if _TIME in columns:
        columns[_TIME] = columns[_TIME].cast(TIMESTAMP, safe=False)
    return Rows(pa.record_batch(columns), topic, first_row, extra or {})


def batch_to_messages(
    batch: pa.RecordBatch, *, topic: str | None = None, first_row: int = 0
) -> list[Message]:
    """Return one message per row, in order. Sending does not need this: see :func:`send_batches`.

    Args:
        batch: has ``body`` and any others of ``WRITE_COLUMNS``; messages have no explicit queue.
        topic: the topic of all rows; replaces a column ``topic``.
        first_row: the number of the first row, for errors.

    Raises:
        MessageRejectedError: a column is unknown, of a wrong type or missing, or a row lacks body or topic.
    """
    found: list[Message] = []
    for part in canonical_batches([batch]):
        rows = rows_of(part, topic=topic, first_row=first_row + len(found))
        found += [_message(rows, row) for row in range(len(rows))]
    return found


def check_columns(schema: pa.Schema, topic: str | None = None) -> None:
    """Refuse a batch that cannot be sent.

    Raises:
        MessageRejectedError: names the column and the expected type.
    """
    for column in schema:
        accepted = WRITE_COLUMNS.get(column.name)
        if accepted is None:
            raise MessageRejectedError(
                f"column {column.name!r} cannot be sent: known are {', '.join(WRITE_COLUMNS)}"
            )
        if _without_zone(column.type) not in accepted:
            wanted = " or ".join(map(str, accepted))
            raise MessageRejectedError(f"column {column.name!r} is {column.type}: cast it to {wanted}")
        if schema.names.count(column.name) > 1:
            raise MessageRejectedError(f"column {column.name!r} is there more than once: leave one")
    if "body" not in schema.names:
        raise MessageRejectedError("a batch to send needs a column 'body'")
    if topic is None and "topic" not in schema.names:
        raise MessageRejectedError("a batch to send needs a topic: name one, or add a column 'topic'")
    if ("queueId" in schema.names) != ("brokerName" in schema.names):
        raise MessageRejectedError("columns 'queueId' and 'brokerName' name a queue together: give both")


def _without_zone(kind: pa.DataType) -> pa.DataType:
    """Replace a time type by one for all zones and units. Types without a zone are not accepted."""
    if pa.types.is_map(kind):  # Spark's create_map of literals makes values that are never null
        return pa.map_(kind.key_type, kind.item_type)
    return TIMESTAMP if pa.types.is_timestamp(kind) and kind.tz is not None else kind


def _message(rows: Rows, row: int) -> Message:
    try:
        return rows.message(row)
    except MessageRejectedError as error:
        raise MessageRejectedError(f"row {rows.number(row)}: {error}") from None


def _value(what: str, column: pa.Array, row: int) -> Any:
    """Return a value. Validates UTF-8, because neither Arrow nor Spark's casts do."""
    try:
        return column[row].as_py()
    except UnicodeDecodeError as error:
        raise MessageRejectedError(
            f"{what} holds {error.object[:_SHOWN_BYTES]!r}, which is not UTF-8: decode it by its own charset"
        ) from error


def _property_map(pairs: list[tuple[str, Any]] | None) -> dict[str, str]:
    properties: dict[str, str] = {}
    for name, value in pairs or ():
        if value is None:
            raise MessageRejectedError(f"property {name!r} is null: leave it out")
        properties[name] = value
    return properties
