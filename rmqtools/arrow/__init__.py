"""Reads and writes queues as Arrow record batches. The only part of the package that needs numpy and pyarrow.

``reader`` reads a topic, for DuckDB, Polars and pandas; ``read_range`` reads a range of a queue;
``decode_block`` decodes a block of stored messages. Their batches have the columns of ``MESSAGE_SCHEMA``, of
``message_schema(...)`` or of ``select_columns(...)``. ``send_batches`` sends batches with columns of
``WRITE_COLUMNS``.
"""

from typing import TYPE_CHECKING

try:
    import numpy  # noqa: F401 - only looked for
    import pyarrow  # noqa: F401 - only looked for
except ImportError as error:
    raise ImportError(
        f"rmqtools.arrow needs numpy and pyarrow: pip install 'rmqtools[arrow]' ({error})", name=error.name
    ) from error

from rmqtools.arrow.bad_row import BadRow
from rmqtools.arrow.canonical import canonical_batches
from rmqtools.arrow.decode import decode_block
from rmqtools.arrow.read_range import read_range, read_ranges
from rmqtools.arrow.reader import reader
from rmqtools.arrow.row_bytes import row_bytes
from rmqtools.arrow.rows import batch_to_messages
from rmqtools.arrow.schema import MESSAGE_SCHEMA, WRITE_COLUMNS, message_schema, select_columns
from rmqtools.arrow.send_batches import SendReport, send_batches
from rmqtools.lazy_names import lazy_names

if TYPE_CHECKING:
    from rmqtools.arrow.files import ParquetFile, holds_read_messages, read_file, read_messages
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"rmqtools.arrow.files": "ParquetFile holds_read_messages read_file read_messages"}
    )

__all__ = [
    "MESSAGE_SCHEMA",
    "WRITE_COLUMNS",
    "BadRow",
    "ParquetFile",
    "SendReport",
    "batch_to_messages",
    "canonical_batches",
    "decode_block",
    "holds_read_messages",
    "message_schema",
    "read_file",
    "read_messages",
    "read_range",
    "read_ranges",
    "reader",
    "row_bytes",
    "select_columns",
    "send_batches",
]
