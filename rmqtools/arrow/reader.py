"""A topic, or ranges of queues, as a ``pyarrow.RecordBatchReader``, which DuckDB, Polars and pandas take."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

import rmqtools
from rmqtools.arrow.read_range import read_ranges
from rmqtools.arrow.schema import MESSAGE_SCHEMA, select_columns
from rmqtools.model.block import CorruptBody
from rmqtools.model.queue import QueueRange

if TYPE_CHECKING:
    from rmqtools.sync.client import Client


def reader(
    client: "Client",
    source: str | Sequence[QueueRange],
    *,
    columns: Sequence[str] | None = None,
    tags: Collection[str] = (),
    sql: str | None = None,
    fail_on_data_loss: bool = True,
    corrupt_body: CorruptBody = "fail",
) -> pa.RecordBatchReader:
    """Return a reader of all messages that a topic has now, or of some ranges.

    It reads while its user takes batches, one batch ahead. It may be used on any thread, and once: to read
    again, make another reader. The client must stay open while batches are taken.

    Args:
        client: the client that reads.
        source: a topic, whose queues are read from their first to their last offset of now; or ranges.
        columns: the names of the columns; None: those of ``MESSAGE_SCHEMA``. Fewer are faster.
        tags: only messages with one of these; empty: all.
        sql: only messages whose properties meet this SQL92 condition.
        fail_on_data_loss: see :meth:`rmqtools.Client.read_blocks`.
        corrupt_body: see :func:`read_range`.

    Raises:
        ConfigError: an unknown column, both ``tags`` and ``sql``, or an unknown ``corrupt_body``.
        TopicNotFoundError: there is no such topic.
        RemotingError: no server answered. While batches are taken, errors as of :func:`read_range`.
    """
    schema = MESSAGE_SCHEMA if columns is None else select_columns(*columns)
    batches = read_ranges(
        client,
        _whole_queues(client, source) if isinstance(source, str) else source,
        schema=schema,
        tags=tags,
        sql=sql,
        fail_on_data_loss=fail_on_data_loss,
        corrupt_body=corrupt_body,
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


def _whole_queues(client: "Client", topic: str) -> list[QueueRange]:
    """Return the range of every queue of a topic, from its first to its last offset of now."""
    admin = rmqtools.Admin(client)
    queues = admin.fetch_subscribe_queues(topic)
    return [QueueRange(queue, admin.min_offset(queue), admin.max_offset(queue)) for queue in queues]
