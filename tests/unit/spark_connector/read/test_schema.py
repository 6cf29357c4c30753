"""Columns: Spark's types agree with the batches', and what cannot be written is refused."""

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, MapType, StringType, StructField, StructType

from rmqtools.arrow import MESSAGE_SCHEMA, WRITE_COLUMNS, message_schema, select_columns
from rmqtools.errors import ConfigError
from spark_connector.read.schema import READ_SCHEMA, columns_of, read_schema
from spark_connector.write.write_schema import WRITE_TYPES, check_write_schema
from tests.support.spark_options import read_of


def fields(**types):
    return StructType([StructField(name, kind) for name, kind in types.items()])


def test_spark_expects_exactly_the_batches_that_are_read():
    assert to_arrow_schema(READ_SCHEMA, timezone="UTC").equals(MESSAGE_SCHEMA, check_metadata=True)


@pytest.mark.parametrize("include_properties", [True, False])
@pytest.mark.parametrize("offset_msg_id", [True, False])
def test_options_shape_sparks_columns_and_the_batches_alike(include_properties, offset_msg_id):
    options = read_of(includeProperties=include_properties, offsetMsgId=offset_msg_id)
    columns = read_schema(options.columns)

    assert to_arrow_schema(columns, timezone="UTC").equals(
        message_schema(include_properties=include_properties, offset_msg_id=offset_msg_id),
        check_metadata=True,
    )


def test_spark_sends_exactly_the_columns_that_are_written():
    as_arrow = {
        name: tuple(to_arrow_schema(fields(c=kind), timezone="UTC").field("c").type for kind in kinds)
        for name, kinds in WRITE_TYPES.items()
    }

    assert as_arrow == WRITE_COLUMNS


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(StructType.fromJson(READ_SCHEMA.jsonValue()), id="the-sources-own"),
        pytest.param(StructType(READ_SCHEMA.fields[:-1]), id="a-column-less"),
        pytest.param(StructType(READ_SCHEMA.fields[::-1]), id="another-order"),
        pytest.param(fields(offsetMsgId=StringType()), id="a-column-that-an-option-adds"),
    ],
)
def test_a_schema_selects_the_columns_to_read(schema):
    columns = columns_of(schema)

    assert to_arrow_schema(schema, timezone="UTC").equals(select_columns(*columns))
    assert read_schema(columns) == schema


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        pytest.param(
            fields(body=StringType()), "'body' as string, format rocketmq reads it as binary", id="type"
        ),
        pytest.param(fields(bodi=StringType()), "did you mean 'body'?", id="unknown"),
        pytest.param(StructType([READ_SCHEMA["body"], READ_SCHEMA["body"]]), "each once", id="twice"),
        pytest.param(StructType([]), "name one or more", id="no-column"),
        pytest.param(
            StructType([StructField("body", BinaryType(), nullable=False)]),
            "'body' as binary NOT NULL: Spark needs columns that may be null",
            id="never-null",
        ),
        pytest.param(
            fields(properties=MapType(StringType(), StringType(), valueContainsNull=False)),
            "'properties' as map<string,string> with values that are NOT NULL: Spark needs",
            id="values-never-null",
        ),
    ],
)
def test_any_other_schema_is_refused(schema, says):
    with pytest.raises(ConfigError, match="the given schema has") as refusal:
        columns_of(schema)

    assert says in str(refusal.value)


def test_all_columns_together_may_be_written():
    check_write_schema(fields(**{name: kinds[-1] for name, kinds in WRITE_TYPES.items()}), topic=None)
