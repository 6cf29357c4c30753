"""Columns of rows to write, the rows of ``column_errors.md``: refused by name, before any task runs."""

from pathlib import Path

import pytest
from pyspark.sql import types

from rmqtools.errors import ConfigError
from spark_connector.write.write_schema import check_write_schema
from tests.support.tables import lacking, quoted, table_rows

NAMED = types.StructType().add("a", types.IntegerType())
HEADER = types.StructType().add("key", types.StringType()).add("value", types.BinaryType())
PLAIN = (types.StringType, types.BinaryType, types.IntegerType, types.LongType, types.NullType)
KINDS: dict[str, types.DataType] = {
    kind.simpleString(): kind
    for kind in (
        *(make() for make in (*PLAIN, types.TimestampNTZType, types.VariantType)),
        *(types.ArrayType(of) for of in (types.StringType(), types.LongType(), HEADER)),
        *(NAMED, types.MapType(types.StringType(), types.IntegerType())),
    )
}


def schema(cell: str) -> types.StructType:
    """The columns of a cell such as ```body=string` `id=bigint```."""
    columns = (text.split("=") for text in quoted(cell))
    return types.StructType([types.StructField(name, KINDS[kind]) for name, kind in columns])


@pytest.mark.parametrize(
    ("columns", "id_column", "says"),
    [
        pytest.param(*cells, id=name)
        for name, *cells in table_rows(Path(__file__).with_name("column_errors.md"))
    ],
)
def test_columns_of_writes_are_refused_by_name(columns, id_column, says):
    with pytest.raises(ConfigError) as refusal:
        check_write_schema(schema(columns), "T", id_column or None)

    assert lacking(str(refusal.value), says) == []


def test_an_id_column_may_be_one_that_is_not_sent():
    check_write_schema(schema("`body=string` `id=bigint`"), "T", "id")
    check_write_schema(schema("`body=string`"), "T", "body")
