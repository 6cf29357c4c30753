"""The columns of a read row."""

from typing import Final

from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rmqtools.errors import ConfigError
from rmqtools.model.read_columns import READ_COLUMNS, ColumnKind
from rmqtools.unknown_name import name_hint
from spark_connector.options.columns import COLUMNS
from spark_connector.options.kafka_names import KAFKA_COLUMNS

_TYPES: Final = {
    ColumnKind.TEXT: StringType(),
    ColumnKind.INT32: IntegerType(),
    ColumnKind.INT64: LongType(),
    ColumnKind.BINARY: BinaryType(),
    ColumnKind.TIMESTAMP: TimestampType(),
    ColumnKind.TEXT_MAP: MapType(StringType(), StringType()),
}
_FIELDS: Final = {column.name: StructField(column.name, _TYPES[column.kind]) for column in READ_COLUMNS}

READ_SCHEMA: Final = StructType([_FIELDS[name] for name in COLUMNS])


def read_schema(columns: tuple[str, ...]) -> StructType:
    """Return the schema of some columns, in their order."""
    return StructType([_FIELDS[name] for name in columns])


def columns_of(schema: StructType) -> tuple[str, ...]:
    """Return the columns to read for a schema: the source's own, or one that a user gave.

    Raises:
        ConfigError: it has an unknown column, or a column of another type.
    """
    for field in schema:
        if field.name not in _FIELDS:
            raise ConfigError(
                f"the given schema has column {field.name!r}, which format rocketmq does not read "
                f"({name_hint(field.name, _FIELDS, KAFKA_COLUMNS)}): correct it, or drop .schema(...)"
            )
        if field.dataType != (own := _FIELDS[field.name].dataType):
            raise ConfigError(
                f"the given schema has column {field.name!r} as {field.dataType.simpleString()}, format "
                f"rocketmq reads it as {own.simpleString()}: use that type and cast after load()"
            )
    if len(set(schema.names)) < len(schema.names) or not schema.names:
        raise ConfigError(f"the given schema has the columns {schema.names}: name one or more, each once")
    return tuple(schema.names)
