"""The columns of messages read, and the columns of messages to write."""

from functools import cache
from typing import Final

import pyarrow as pa

from rmqtools.errors import ConfigError
from rmqtools.model.read_columns import READ_COLUMNS, ColumnKind
from rmqtools.unknown_name import unknown_name

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
PROPERTIES: Final = pa.map_(pa.string(), pa.string())

_TYPES: Final = {
    ColumnKind.TEXT: pa.string(),
    ColumnKind.INT32: pa.int32(),
    ColumnKind.INT64: pa.int64(),
    ColumnKind.BINARY: pa.binary(),
    ColumnKind.TIMESTAMP: TIMESTAMP,
    ColumnKind.TEXT_MAP: PROPERTIES,
}
_FIELDS: Final = {column.name: pa.field(column.name, _TYPES[column.kind]) for column in READ_COLUMNS}

# One object for all batches. Spark needs exactly these types (no large_string, no dictionary, tz "UTC").
MESSAGE_SCHEMA: Final = pa.schema([_FIELDS[column.name] for column in READ_COLUMNS if not column.is_extra])


@cache
def message_schema(*, include_properties: bool = True, offset_msg_id: bool = False) -> pa.Schema:
    """Return the columns to read: those of ``MESSAGE_SCHEMA``, or fewer, or one more. Cached.

    Args:
        include_properties: with the column ``properties``, which costs most.
        offset_msg_id: with the column ``offsetMsgId`` at the end: the message's position in the commit log.
    """
    fields = [field for field in MESSAGE_SCHEMA if include_properties or field.name != "properties"]
    if len(fields) == len(MESSAGE_SCHEMA) and not offset_msg_id:
        return MESSAGE_SCHEMA
    return pa.schema([*fields, _FIELDS["offsetMsgId"]] if offset_msg_id else fields)


def select_columns(*names: str) -> pa.Schema:
    """Return some columns to read, in the order named. The others are not decoded.

    Args:
        names: of ``MESSAGE_SCHEMA``, or ``offsetMsgId``; each once.

    Raises:
        ConfigError: an unknown name, a name given twice, or no name.
    """
    for number, name in enumerate(names):
        if name not in _FIELDS:
            raise ConfigError(unknown_name("column", name, list(_FIELDS)))
        if name in names[:number]:
            raise ConfigError(f"column {name!r} is named twice: name each once")
    if not names:
        raise ConfigError(f"no column is named: name some of {', '.join(_FIELDS)}")
    return pa.schema([_FIELDS[name] for name in names])


# Columns of a batch to send. Only the body is required; a string body is sent as UTF-8.
WRITE_COLUMNS: Final = {
    "body": (pa.binary(), pa.string()),
    "topic": (pa.string(),),
    "tags": (pa.string(),),
    "keys": (pa.string(),),
    "properties": (PROPERTIES,),
    "shardingKey": (pa.string(),),  # rows with one key go to one queue, in order
    "queueId": (pa.int32(),),  # an explicit queue, together with brokerName
    "brokerName": (pa.string(),),
    "delayLevel": (pa.int32(),),
    "deliverTimestamp": (TIMESTAMP,),  # of any time zone
}
