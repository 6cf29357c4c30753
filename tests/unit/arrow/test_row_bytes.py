"""The values of whole rows as bytes."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from rmqtools.arrow import row_bytes
from rmqtools.arrow.row_bytes import digest_of

PROPERTIES = pa.map_(pa.string(), pa.string())


def batch(**columns) -> pa.RecordBatch:
    return pa.record_batch({name: pa.array(values) for name, values in columns.items()})


def test_row_bytes_are_lengths_and_values():
    (row,) = row_bytes(batch(body=["a"], keys=[None]), ["body", "keys"]).to_pylist()

    assert row == b"\x00\x00\x00\x01a\xff\xff\xff\xff"


def test_no_rows_have_no_bytes():
    assert len(row_bytes(batch(body=["a"], keys=["k"]).slice(1), ["body", "keys"])) == 0


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param(pa.array([b"\xff"]), b"\xff", id="bytes"),
        pytest.param(pa.array([12]), b"12", id="number"),
        pytest.param(pa.array([1.5]), b"1.5", id="fraction"),
        pytest.param(pa.array([Decimal("1.10")]), b"1.10", id="decimal"),
        pytest.param(pa.array([True]), b"true", id="boolean"),
        pytest.param(pa.array([date(1970, 1, 3)]), b"2", id="day"),
        pytest.param(pa.array([datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]), b"1000000", id="time"),
        pytest.param(pa.array([[("a", "b")]], PROPERTIES), b"a\x01b\x02", id="map"),
    ],
)
def test_a_value_of_each_type_has_its_bytes_after_their_number(value, written):
    (row,) = row_bytes(pa.record_batch({"v": value}), ["v"]).to_pylist()

    assert row == len(written).to_bytes(4, "big") + written


@pytest.mark.parametrize("name", ["tags", "shardingKey"])
def test_a_digest_is_of_the_rows_and_tells_null_from_empty(name):
    rows = batch(body=["a", "b", "c"], **{name: ["k", None, ""]})

    parts = [digest_of(rows.slice(row, 1)) for row in range(3)]

    assert digest_of(rows) == sum(parts) % (1 << 128)
    assert parts[1] != digest_of(batch(body=["b"], **{name: [""]}))


def test_a_sharding_key_that_is_null_counts_as_no_column_of_it():
    assert digest_of(batch(body=["a"], shardingKey=pa.nulls(1, pa.string()))) == digest_of(batch(body=["a"]))
