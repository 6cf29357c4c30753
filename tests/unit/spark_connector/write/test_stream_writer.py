"""Rows of PySpark 4.0 become the batches that newer versions give."""

from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql.types import MapType, StringType, StructType

from rmqtools.arrow.schema import PROPERTIES, TIMESTAMP
from spark_connector.write.stream_writer import batches_of

SCHEMA = (
    StructType()
    .add("body", "binary")
    .add("tags", "string")
    .add("properties", MapType(StringType(), StringType()))
    .add("deliverTimestamp", "timestamp")
    .add("id", "long")
)
AT = datetime(2026, 1, 31, 10, tzinfo=UTC)


def test_rows_become_batches_of_the_columns_types():
    local = AT.astimezone().replace(tzinfo=None)  # as Spark's workers give it
    rows = [(bytearray(b"a"), "t", {"a": "1"}, local, 7), (b"b", None, None, None, None)]

    (batch,) = batches_of(rows, SCHEMA)

    kinds = [pa.binary(), pa.string(), PROPERTIES, TIMESTAMP, pa.int64()]
    assert batch.schema == pa.schema(list(zip(SCHEMA.names, kinds, strict=True)))
    assert batch.column("deliverTimestamp").to_pylist() == [AT, None]
    assert batch.column("properties").to_pylist() == [[("a", "1")], None]


def test_a_text_body_stays_a_text_and_many_rows_are_several_batches():
    schema = StructType().add("body", "string")

    batches = list(batches_of(((str(number),) for number in range(5000)), schema))

    assert [batch.num_rows for batch in batches] == [4096, 904]
    assert batches[0].schema.field("body").type == pa.string()
    assert list(batches_of([], schema)) == []
