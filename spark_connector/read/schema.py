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
        ConfigError: it has an unknown column, a column of another type, or one that may not be null: Spark
            would refuse its batches in the tasks.
    """
    for field in schema:
        if field.name not in _FIELDS:
            raise ConfigError(
                f"the given schema has column {field.name!r}, which format rocketmq does not read "
                f"({name_hint(field.name, _FIELDS, KAFKA_COLUMNS)}): correct it, or drop .schema(...)"
            )
        own = _FIELDS[field.name].dataType
        given, wanted = field.dataType.simpleString(), own.simpleString()
        if given != wanted:
            raise ConfigError(
                f"the given schema has column {field.name!r} as {given}, format rocketmq reads it as "
                f"{wanted}: use that type and cast after load()"
            )
        if not field.nullable or field.dataType != own:
            what = "with values that are NOT NULL" if field.nullable else "NOT NULL"
            raise ConfigError(
                f"the given schema has column {field.name!r} as {given} {what}: Spark needs columns that may "
                "be null, as format rocketmq has them; leave NOT NULL out"
            )
    if len(set(schema.names)) < len(schema.names) or not schema.names:
        raise ConfigError(f"the given schema has the columns {schema.names}: name one or more, each once")
    return tuple(schema.names)
