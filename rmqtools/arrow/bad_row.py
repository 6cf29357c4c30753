"""A row that cannot be sent, and the message that carries as much of it as can be sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa

from rmqtools.arrow.rows import Rows
from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import Message
from rmqtools.policy.validate import check_message

_NO_BODY: Final = b"-"  # brokers store no message without a body
_SENT: Final = ("topic", "tags", "keys", "properties")  # others may have values that no Python type has


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be sent.

    Attributes:
        reason: the error's text, which begins with the row's number.
        row: the row itself, a batch of one.
        extra: its extra properties.
    """

    reason: str
    row: pa.RecordBatch
    extra: Mapping[str, str]

    @classmethod
    def of(cls, rows: Rows, row: int, reason: str) -> Self:
        """Return the bad row at an index."""
        extra = {name: column[row].as_py() for name, column in rows.extra.items()}
        return cls(reason, rows.columns.slice(row, 1), extra)

    def as_message(
        self, topic: str, properties: Mapping[str, str], *, topic_property: str, max_body_bytes: int
    ) -> Message:
        """Return the row as a message of another topic.

        It has the row's body (``-`` if there is none, or only its first bytes), ``extra`` and ``properties``;
        and also tags, keys, properties and the row's topic, if all of them can be sent.

        Args:
            topic: the topic of the message.
            properties: more properties, which can be sent.
            topic_property: the name of the property for the row's topic.
            max_body_bytes: where a body is cut off.
        """
        body = (self.row.column("body")[0].as_py() or _NO_BODY)[:max_body_bytes]
        own = {**self.extra, **properties}
        try:
            (values,) = self.row.select([name for name in _SENT if name in self.row.schema.names]).to_pylist()
            named = {topic_property: values["topic"]} if values.get("topic") else {}
            texts = {**dict(values.get("properties") or ()), **named, **own}
            message = Message(topic, body, values.get("tags"), values.get("keys") or (), texts)
            check_message(message, max_body_bytes)
        except (MessageRejectedError, UnicodeDecodeError, TypeError):
            return Message(topic, body, properties=own)
        return message
