"""Rows of record batches as messages: their columns checked, and a Message for rows that need one."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rmqtools.arrow.schema import TIMESTAMP, WRITE_COLUMNS
from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import Message

_US_PER_MS = 1000
_TIME = "deliverTimestamp"
_SHOWN_BYTES = 64  # of a text that is none


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to send.

    Attributes:
        columns: some of ``WRITE_COLUMNS``; the body as binary.
        topic: where all go; None: each has its own in a column.
        first_row: the number of the first, for errors.
        extra: more properties by name, a text for every row.
        taken: of rows taken from others, their places among those; None: all, in order.
    """

    columns: pa.RecordBatch
    topic: str | None = None
    first_row: int = 0
    extra: dict[str, pa.Array] = field(default_factory=dict)
    taken: pa.Array | None = None

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def column(self, name: str) -> pa.Array | None:
        """A column; None where it is absent, or has nothing but nulls."""
        if name not in self.columns.schema.names:
            return None
        column = self.columns.column(name)
        return None if column.null_count == len(column) else column

    def take(self, rows: pa.Array) -> "Rows":
        """Some of the rows, in the order of their places in ``rows``; they keep their numbers."""
        extra = {name: column.take(rows) for name, column in self.extra.items()}
        taken = rows if self.taken is None else self.taken.take(rows)
        return Rows(self.columns.take(rows), self.topic, self.first_row, extra, taken)

    def number(self, row: int) -> int:
        """What errors call a row."""
        return self.first_row + int(row if self.taken is None else self.taken[row].as_py())

    def value(self, name: str, row: int) -> Any:
        """One value of a column.

        Raises:
            MessageRejectedError: it holds bytes that are no text.
        """
        return _value(f"column {name!r}", self.columns.column(name), row)

    def message(self, row: int) -> Message:
        """One row as a message.

        Raises:
            MessageRejectedError: no body, no topic, a property without value, or bytes that are no text.
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
        """Of the number, not of a datetime: those end with the year 9999."""
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
    """Take a batch's rows.

    Raises:
        MessageRejectedError: a column is unknown, of a wrong type or missing.
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
        batch: has ``body`` and any others of ``WRITE_COLUMNS``; an explicit queue is not part of a message.
        topic: where all rows go, over a column ``topic``.
        first_row: the number of the first row, for errors.

    Raises:
        MessageRejectedError: a column is unknown, of a wrong type or missing, or a row lacks body or topic.
    """
    rows = rows_of(batch, topic=topic, first_row=first_row)
    return [_message(rows, row) for row in range(len(rows))]


def check_columns(schema: pa.Schema, topic: str | None = None) -> None:
    """Refuse a batch that cannot be sent.

    Raises:
        MessageRejectedError: names the column and what is wanted.
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
    if "body" not in schema.names:
        raise MessageRejectedError("a batch to send needs a column 'body'")
    if topic is None and "topic" not in schema.names:
        raise MessageRejectedError("a batch to send needs a topic: name one, or add a column 'topic'")
    if ("queueId" in schema.names) != ("brokerName" in schema.names):
        raise MessageRejectedError("columns 'queueId' and 'brokerName' name a queue together: give both")


def _without_zone(kind: pa.DataType) -> pa.DataType:
    """Times are the same in any time zone and unit; without zone they are none."""
    if pa.types.is_map(kind):  # with values that are never null, as Spark's create_map of literals makes it
        return pa.map_(kind.key_type, kind.item_type)
    return TIMESTAMP if pa.types.is_timestamp(kind) and kind.tz is not None else kind


def _message(rows: Rows, row: int) -> Message:
    try:
        return rows.message(row)
    except MessageRejectedError as error:
        raise MessageRejectedError(f"row {rows.number(row)}: {error}") from None


def _value(what: str, column: pa.Array, row: int) -> Any:
    """A value; that a text is UTF-8 is looked at by no one before, neither Arrow nor Spark's casts."""
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
