"""Rows of record batches as messages: their columns checked, and a Message for rows that need one."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rmqtools.arrow.schema import TIMESTAMP, WRITE_COLUMNS
from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import Message

_US_PER_MS = 1000


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to send.

    Attributes:
        columns: some of ``WRITE_COLUMNS``; the body as binary.
        topic: where all go; None: each has its own in a column.
        first_row: the number of the first, for errors.
        extra: more properties by name, a text for every row.
    """

    columns: pa.RecordBatch
    topic: str | None = None
    first_row: int = 0
    extra: dict[str, pa.Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def column(self, name: str) -> pa.Array | None:
        """A column; None where it is absent, or has nothing but nulls."""
        if name not in self.columns.schema.names:
            return None
        column = self.columns.column(name)
        return None if column.null_count == len(column) else column

    def take(self, rows: pa.Array) -> "Rows":
        """Some of the rows, in the order of their numbers in ``rows``; ``first_row`` loses its meaning."""
        extra = {name: column.take(rows) for name, column in self.extra.items()}
        return Rows(self.columns.take(rows), self.topic, self.first_row, extra)

    def message(self, row: int) -> Message:
        """One row as a message.

        Raises:
            MessageRejectedError: it has no body, no topic, or a property without value.
        """
        values = {name: self.columns.column(name)[row].as_py() for name in self.columns.schema.names}
        topic = self.topic if self.topic is not None else values.get("topic")
        if values["body"] is None or topic is None:
            what = "topic" if values["body"] is not None else "body"
            raise MessageRejectedError(f"{what} is null: fill it, or drop the row")
        properties = _property_map(values.get("properties"))
        properties |= {name: column[row].as_py() for name, column in self.extra.items()}
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
        column = self.column("deliverTimestamp")
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
    if "deliverTimestamp" in columns:
        columns["deliverTimestamp"] = columns["deliverTimestamp"].cast(TIMESTAMP, safe=False)
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
        raise MessageRejectedError(f"row {rows.first_row + row}: {error}") from None


def _property_map(pairs: list[tuple[str, Any]] | None) -> dict[str, str]:
    properties: dict[str, str] = {}
    for name, value in pairs or ():
        if value is None:
            raise MessageRejectedError(f"property {name!r} is null: leave it out")
        properties[name] = value
    return properties
