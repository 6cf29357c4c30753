"""The columns of a read row, and those a row may have to be written."""

from typing import Final

from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rmqtools.errors import ConfigError
from spark_connector.options import nearest_name

_PROPERTIES: Final = MapType(StringType(), StringType())

READ_SCHEMA: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("brokerName", StringType()),
        StructField("queueId", IntegerType()),
        StructField("queueOffset", LongType()),
        StructField("body", BinaryType()),
        StructField("tags", StringType()),
        StructField("keys", StringType()),
        StructField("properties", _PROPERTIES),
        StructField("msgId", StringType()),
        StructField("bornTimestamp", TimestampType()),
        StructField("storeTimestamp", TimestampType()),
        StructField("bornHost", StringType()),
        StructField("reconsumeTimes", IntegerType()),
        StructField("sysFlag", IntegerType()),
        StructField("flag", IntegerType()),
    ]
)

WRITE_TYPES: Final[dict[str, tuple[DataType, ...]]] = {
    "body": (BinaryType(), StringType()),
    "topic": (StringType(),),
    "tags": (StringType(),),
    "keys": (StringType(),),
    "properties": (_PROPERTIES,),
}


def check_read_schema(schema: StructType) -> None:
    """Refuse a schema the user gave that is not the source's own.

    Raises:
        ConfigError: it differs.
    """
    if [(field.name, field.dataType) for field in schema] != [(f.name, f.dataType) for f in READ_SCHEMA]:
        raise ConfigError(
            f"format rocketmq has a schema of its own, it cannot be read as {schema.simpleString()}: "
            "drop .schema(...) and select or cast columns after load()"
        )


def check_write_schema(schema: StructType, topic: str | None) -> None:
    """Refuse rows that cannot be made into messages.

    Args:
        schema: the DataFrame's.
        topic: the option ``topic``; None: every row must name its own.

    Raises:
        ConfigError: no body, no topic, an unknown column, or one of the wrong type.
    """
    for field in schema:
        _check_column(field)
    if "body" not in schema.names:
        raise ConfigError(f"no column 'body' to write among {schema.names}: select(... .alias('body'))")
    if topic is None and "topic" not in schema.names:
        raise ConfigError("where to write is not given: set option 'topic' or add a column 'topic'")


def _check_column(field: StructField) -> None:
    if (accepted := WRITE_TYPES.get(field.name)) is None:
        hint = nearest_name(field.name, WRITE_TYPES)
        raise ConfigError(f"column {field.name!r} cannot be written ({hint}): drop or rename it")
    if not any(_has_type(field.dataType, kind) for kind in accepted):
        wanted = " or ".join(kind.simpleString() for kind in accepted)
        raise ConfigError(f"column {field.name!r} is {field.dataType.simpleString()}: cast it to {wanted}")


def _has_type(given: DataType, kind: DataType) -> bool:
    """Equal but for nullability and collation."""
    if isinstance(kind, MapType):
        return isinstance(given, MapType) and all(
            isinstance(part, StringType) for part in (given.keyType, given.valueType)
        )
    return isinstance(given, type(kind))
