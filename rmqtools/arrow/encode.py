"""Record batches to messages, row by row."""

import pyarrow as pa

from rmqtools.arrow.schema import WRITE_COLUMNS
from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import Message


def batch_to_messages(
    batch: pa.RecordBatch, *, topic: str | None = None, first_row: int = 0
) -> list[Message]:
    """Return one message per row, in order.

    Args:
        batch: has ``body`` and any others of ``WRITE_COLUMNS``.
        topic: where all rows go, over a column ``topic``.
        first_row: the number of the first row, for errors.

    Raises:
        MessageRejectedError: a column is unknown, of a wrong type or missing, or a row lacks body or topic.
    """
    check_columns(batch.schema, topic)
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names if name != "body"}
    rows = [None] * batch.num_rows
    topics = [topic] * batch.num_rows if topic is not None else columns["topic"]
    messages: list[Message] = []
    for number, (body, to, tags, keys, properties) in enumerate(
        zip(
            batch.column("body").cast(pa.binary()).to_pylist(),
            topics,
            columns.get("tags", rows),
            columns.get("keys", rows),
            columns.get("properties", rows),
            strict=True,
        ),
        first_row,
    ):
        if body is None or to is None:
            raise MessageRejectedError(
                f"row {number}: {'topic' if body is not None else 'body'} is null: fill it, or drop the row"
            )
        messages.append(Message(to, body, tags, keys or (), _property_map(properties, number)))
    return messages


def check_columns(schema: pa.Schema, topic: str | None = None) -> None:
    """Refuse a batch that cannot be sent.

    Raises:
        MessageRejectedError: names the column and what is wanted.
    """
    for field in schema:
        accepted = WRITE_COLUMNS.get(field.name)
        if accepted is None:
            raise MessageRejectedError(
                f"column {field.name!r} cannot be sent: known are {', '.join(WRITE_COLUMNS)}"
            )
        if field.type not in accepted:
            wanted = " or ".join(map(str, accepted))
            raise MessageRejectedError(f"column {field.name!r} is {field.type}: cast it to {wanted}")
    if "body" not in schema.names:
        raise MessageRejectedError("a batch to send needs a column 'body'")
    if topic is None and "topic" not in schema.names:
        raise MessageRejectedError("a batch to send needs a topic: name one, or add a column 'topic'")


def _property_map(pairs: list[tuple[str, str | None]] | None, number: int) -> dict[str, str]:
    properties: dict[str, str] = {}
    for name, value in pairs or ():
        if value is None:
            raise MessageRejectedError(f"row {number}: property {name!r} is null: leave it out")
        properties[name] = value
    return properties
