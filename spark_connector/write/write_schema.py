"""The columns a row may have to be written; ``save()`` refuses others if the schema shows them."""

from collections import Counter
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
from rmqtools.model.read_columns import QUEUE_OFFSET, READ_COLUMNS
from rmqtools.unknown_name import name_hint
from spark_connector.options.catalog_table import CATALOG_REMEDY
from spark_connector.options.kafka_names import KAFKA_COLUMNS
from spark_connector.options.write_settings import WriteOptions

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
READ_ONLY: Final = tuple(column.name for column in READ_COLUMNS if not column.is_writable)
_DELAYS: Final = ("delayLevel", "deliverTimestamp")
_QUEUE: Final = ("queueId", "brokerName")
_NESTED: Final = (ArrayType, MapType, StructType, VariantType)
_SET_BY_BROKERS: Final = {  # columns of Kafka's sink and source
    "timestamp": "brokers set the time of storing; deliverTimestamp delays delivery",
    "offset": "brokers give each message its offset",
}
_KEYLESS: Final = (ArrayType, MapType, StructType, NullType, VariantType)


def for_schema(options: WriteOptions, schema: StructType) -> WriteOptions:
    """Return the options of a write of rows with this schema.

    Raises:
        ConfigError: as :func:`check_write_schema`.
    """
    check_write_schema(schema, options.topic, options.id_column, keep_queue=options.keep_queue)
    ignored = ignored_columns(schema, keep_queue=options.keep_queue)
    if options.staging is not None and (late := [name for name in _DELAYS if name in schema.names]):
        raise ConfigError(
            f"column {late[0]!r}: rows with a delay cannot be staged, since brokers hide them until their "
            "time: drop the column, or write with delivery=atLeastOnce"
        )
    unsent = {*ignored, *({options.id_column} - WRITE_TYPES.keys())}
    return replace(
        options, is_copy=is_read(schema), unsent=tuple(name for name in schema.names if name in unsent)
    )


def check_write_schema(
    schema: StructType, topic: str | None, id_column: str | None = None, *, keep_queue: bool = False
) -> None:
    """Check that rows can be turned into messages.

    Args:
        schema: the DataFrame's schema.
        topic: the option ``topic``; None: every row must name its own.
        id_column: the option ``idColumn``; may be a column that is not sent.
        keep_queue: the option ``keepQueue``.

    Raises:
        ConfigError: no body, no topic, an unknown column, a column twice, a wrong type, or only one of the
            queue's columns.
    """
    if twice := [name for name, count in Counter(schema.names).items() if count > 1]:
        raise ConfigError(
            f"column {twice[0]!r} is there {schema.names.count(twice[0])} times: drop or rename one"
        )
    ignored = {*ignored_columns(schema, keep_queue=keep_queue), *({id_column} - WRITE_TYPES.keys())}
    for field in schema:
        if field.name not in ignored:
            _check_column(field)
    if "body" not in schema.names:
        raise ConfigError(f"no column 'body' to write among {schema.names}: select(... .alias('body'))")
    if topic is None and "topic" not in schema.names:
        raise ConfigError(
            f"where to write is not given: set option 'topic' or add a column 'topic'; {CATALOG_REMEDY}"
        )
    _check_queue_columns(
        schema, keep_queue=keep_queue, is_ignored=_QUEUE[0] in ignored or _QUEUE[1] in ignored
    )
    if id_column is not None:
        _check_id_column(schema, id_column)


def is_read(schema: StructType) -> bool:
    """Return whether this source read the rows, possibly changed since."""
    return QUEUE_OFFSET in schema.names


def ignored_columns(schema: StructType, *, keep_queue: bool = False) -> list[str]:
    """Columns of read rows that are not written, because brokers set them."""
    if not is_read(schema):
        return []
    left_out = {*READ_ONLY, *(() if keep_queue else _QUEUE)}
    return [name for name in schema.names if name in left_out]


def _check_queue_columns(schema: StructType, *, keep_queue: bool, is_ignored: bool) -> None:
    given = [name for name in _QUEUE if name in schema.names]
    if keep_queue and not is_read(schema):
        raise ConfigError(
            "option 'keepQueue' is for rows that were read, with their column 'queueOffset': leave it out, "
            "columns 'queueId' and 'brokerName' choose the queue"
        )
    if keep_queue and len(given) < len(_QUEUE):
        raise ConfigError(
            "option 'keepQueue' needs columns 'queueId' and 'brokerName': keep them, or drop it"
        )
    if len(given) == 1 and not is_ignored:
        raise ConfigError("columns 'queueId' and 'brokerName' name a queue together: give both or neither")


def _check_column(field: StructField) -> None:
    if (accepted := WRITE_TYPES.get(field.name)) is None:
        if (why := _SET_BY_BROKERS.get(field.name)) is not None:
            raise ConfigError(f"column {field.name!r} cannot be written: {why}; drop or rename it")
        hint = name_hint(field.name, WRITE_TYPES, KAFKA_COLUMNS)
        raise ConfigError(f"column {field.name!r} cannot be written ({hint}): drop or rename it")
    if not any(_has_type(field.dataType, kind) for kind in accepted):
        given = field.dataType.simpleString()
        raise ConfigError(f"column {field.name!r} is {given}: {_remedy(field, accepted)}")


def _remedy(field: StructField, accepted: tuple[DataType, ...]) -> str:
    """Return the expression that makes a column of the accepted type: a cast where that keeps the value."""
    name, kind = field.name, field.dataType
    if name == "body" and isinstance(kind, _NESTED):
        return f"write to_json({name}) AS {name}"
    if name == "keys" and isinstance(kind, ArrayType):
        return f"write array_join({name}, ' ') AS {name}"
    if name == "properties" and isinstance(kind, StructType):
        return f"write from_json(to_json({name}), 'map<string,string>') AS {name}"
    if name == "properties" and isinstance(kind, ArrayType):  # Kafka's headers
        pairs = f"transform({name}, h -> struct(h.key, CAST(h.value AS STRING)))"
        return f"write map_from_entries({pairs}) AS {name}"
    wanted = " or ".join(each.simpleString() for each in accepted)
    if isinstance(kind, _NESTED) and name != "properties":
        return f"want {wanted}; take one value of it"
    return f"cast it to {wanted}"


def _check_id_column(schema: StructType, name: str) -> None:
    if name not in schema.names:
        raise ConfigError(f"option 'idColumn' = {name!r}: no such column ({name_hint(name, schema.names)})")
    if isinstance(kind := schema[name].dataType, _KEYLESS):
        raise ConfigError(
            f"option 'idColumn' = {name!r} is {kind.simpleString()}: want a column of one value"
        )


def _has_type(given: DataType, kind: DataType) -> bool:
    """Return whether types are equal, apart from nullability and collation."""
    if isinstance(kind, MapType):
        return isinstance(given, MapType) and all(
            isinstance(part, StringType) for part in (given.keyType, given.valueType)
        )
    return isinstance(given, type(kind))
