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
from spark_connector.options.read_settings import ReadOptions

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

_PROPERTIES_COLUMN: Final = "properties"
_OFFSET_MSG_ID: Final = StructField("offsetMsgId", StringType())


def read_schema(options: ReadOptions) -> StructType:
    """The columns of a read row, depending on the options."""
    fields = [
        field for field in READ_SCHEMA if field.name != _PROPERTIES_COLUMN or options.include_properties
    ]
    return StructType([*fields, _OFFSET_MSG_ID] if options.offset_msg_id else fields)


def check_read_schema(schema: StructType, own: StructType) -> None:
    """Refuse a user's schema that differs from the source's own.

    Raises:
        ConfigError: it differs.
    """
    if [(field.name, field.dataType) for field in schema] != [(f.name, f.dataType) for f in own]:
        raise ConfigError(
            f"format rocketmq has a schema of its own, it cannot be read as {schema.simpleString()}: "
            "drop .schema(...) and select or cast columns after load()"
        )
