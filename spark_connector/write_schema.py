"""The columns a row may have to be written; refused at ``save()`` where the schema shows it."""

from dataclasses import replace
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
)

from rmqtools.errors import ConfigError
from spark_connector.option import nearest_name
from spark_connector.write_role import WriteOptions

WRITE_TYPES: Final[dict[str, tuple[DataType, ...]]] = {
    "body": (BinaryType(), StringType()),
    "topic": (StringType(),),
    "tags": (StringType(),),
    "keys": (StringType(),),
    "properties": (MapType(StringType(), StringType()),),
    "shardingKey": (StringType(),),
    "queueId": (IntegerType(),),
    "brokerName": (StringType(),),
    "delayLevel": (IntegerType(),),
    "deliverTimestamp": (TimestampType(),),
}
READ_ONLY: Final = (
    "queueOffset",
    "msgId",
    "bornTimestamp",
    "storeTimestamp",
    "bornHost",
    "reconsumeTimes",
    "sysFlag",
    "flag",
)
_ALSO_READ_ONLY: Final = "offsetMsgId"
_KEYLESS: Final = (ArrayType, MapType, StructType, NullType, VariantType)


def for_schema(options: WriteOptions, schema: StructType) -> WriteOptions:
    """The options of a write of such rows.

    Raises:
        ConfigError: as :func:`check_write_schema`.
    """
    check_write_schema(schema, options.topic, options.id_column)
    unsent = {options.id_column, *ignored_columns(schema)} - WRITE_TYPES.keys()
    return replace(options, unsent=tuple(name for name in schema.names if name in unsent))


def check_write_schema(schema: StructType, topic: str | None, id_column: str | None = None) -> None:
    """Refuse rows that cannot be made into messages.

    Args:
        schema: the DataFrame's.
        topic: the option ``topic``; None: every row must name its own.
        id_column: the option ``idColumn``: may be a column that is not sent.

    Raises:
        ConfigError: no body, no topic, an unknown column, one of the wrong type, or half a queue.
    """
    ignored = {id_column, *ignored_columns(schema)} - WRITE_TYPES.keys()
    for field in schema:
        if field.name not in ignored:
            _check_column(field)
    if "body" not in schema.names:
        raise ConfigError(f"no column 'body' to write among {schema.names}: select(... .alias('body'))")
    if topic is None and "topic" not in schema.names:
        raise ConfigError("where to write is not given: set option 'topic' or add a column 'topic'")
    if ("queueId" in schema.names) != ("brokerName" in schema.names):
        raise ConfigError("columns 'queueId' and 'brokerName' name a queue together: give both or neither")
    if id_column is not None:
        _check_id_column(schema, id_column)


def ignored_columns(schema: StructType) -> list[str]:
    """Columns that INSERT INTO a view cannot leave out, for they are the view's, and nobody can write."""
    if not set(READ_ONLY) <= set(schema.names):
        return []
    return [name for name in schema.names if name in READ_ONLY or name == _ALSO_READ_ONLY]


def _check_column(field: StructField) -> None:
    if (accepted := WRITE_TYPES.get(field.name)) is None:
        hint = nearest_name(field.name, WRITE_TYPES)
        raise ConfigError(f"column {field.name!r} cannot be written ({hint}): drop or rename it")
    if not any(_has_type(field.dataType, kind) for kind in accepted):
        wanted = " or ".join(kind.simpleString() for kind in accepted)
        raise ConfigError(f"column {field.name!r} is {field.dataType.simpleString()}: cast it to {wanted}")


def _check_id_column(schema: StructType, name: str) -> None:
    if name not in schema.names:
        raise ConfigError(
            f"option 'idColumn' = {name!r}: no such column ({nearest_name(name, schema.names)})"
        )
    if isinstance(kind := schema[name].dataType, _KEYLESS):
        raise ConfigError(
            f"option 'idColumn' = {name!r} is {kind.simpleString()}: want a column of one value"
        )


def _has_type(given: DataType, kind: DataType) -> bool:
    """Equal but for nullability and collation."""
    if isinstance(kind, MapType):
        return isinstance(given, MapType) and all(
            isinstance(part, StringType) for part in (given.keyType, given.valueType)
        )
    return isinstance(given, type(kind))
