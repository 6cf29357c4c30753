"""Stamps: a row's place, and a hash of its values."""

import pyarrow as pa
import pytest

from spark_connector.write.stamps import HASH, STAMP, Stamper

PROPERTIES = pa.map_(pa.string(), pa.string())


def batch(**columns) -> pa.RecordBatch:
    return pa.record_batch({name: pa.array(values) for name, values in columns.items()})


def hashes(rows: pa.RecordBatch, id_column=None) -> list[str]:
    return Stamper("q", 0, 0, id_column)(rows, 0)[HASH].to_pylist()


def test_a_stamp_says_where_the_row_was():
    stamps = Stamper("query", 7, 3)(batch(body=["a", "b"]), 40)

    assert stamps[STAMP].to_pylist() == ["query/7/3/40", "query/7/3/41"]
    assert [len(text) for text in stamps[HASH].to_pylist()] == [32, 32]


def test_equal_rows_have_equal_hashes_and_others_do_not():
    rows = batch(body=["a", "a", "b", None], tags=["t", "t", "t", "t"])

    first, second, third, fourth = hashes(rows)

    assert first == second
    assert len({first, third, fourth}) == 3


def test_a_hash_is_of_the_row_and_not_of_its_neighbours():
    rows = batch(body=["x", "a", "y"], keys=[None, "k", "k"])

    assert hashes(rows)[1:] == hashes(rows.slice(1))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"body": ["ab"], "keys": ["c"]}, {"body": ["a"], "keys": ["bc"]}, id="cut-elsewhere"),
        pytest.param({"body": ["a"], "keys": [""]}, {"body": ["a"], "keys": [None]}, id="empty-and-null"),
    ],
)
def test_what_is_alike_when_joined_differs(one, other):
    assert hashes(batch(**one)) != hashes(batch(**other))


def test_properties_count():
    def of(entries):
        rows = pa.record_batch({"body": pa.array(["a"]), "properties": pa.array([entries], PROPERTIES)})
        return hashes(rows)[0]

    assert len({of([("n", "1")]), of([("n", "2")]), of(None), of([("n", "1"), ("m", "1")])}) == 4


def test_with_an_id_column_the_rest_of_the_row_does_not_count():
    rows = batch(body=["a", "b", "a"], id=[1, 1, 2])

    first, second, third = hashes(rows, "id")

    assert first == second != third


def test_where_the_id_is_null_the_whole_row_counts():
    rows = batch(body=["a", "b", "a", "b"], id=[None, None, 1, 1])

    first, second, third, fourth = hashes(rows, "id")

    assert [first, second] == hashes(rows)[:2]
    assert len({first, second, third}) == 3
    assert third == fourth


@pytest.mark.parametrize(
    "ids", [pa.array([None] * 2, pa.int64()), pa.nulls(2)], ids=["null-values", "null-type"]
)
def test_rows_without_any_id_are_told_apart(ids):
    first, second = hashes(pa.record_batch({"body": pa.array(["a", "b"]), "id": ids}), "id")

    assert first != second


def test_with_an_own_id_the_stamp_says_it_instead_of_the_write():
    stamps = Stamper(None, 0, 3, stamp_id="run-7")(batch(body=["a"]), 40)

    assert stamps[STAMP].to_pylist() == ["run-7/0/3/40"]


def test_with_an_own_id_and_an_id_column_the_place_does_not_count_but_for_rows_without_id():
    rows = batch(body=["a", "a", "a"], id=[1, 2, None])
    here, there = (Stamper(None, 0, place, "id", "run-7")(rows, 5 * place) for place in (0, 3))

    assert here[STAMP].to_pylist() == ["run-7", "run-7", "run-7/0/0/2"]
    assert there[STAMP].to_pylist() == ["run-7", "run-7", "run-7/0/3/17"]
    assert here[HASH] == there[HASH]
    assert len(set(here[HASH].to_pylist())) == 3


def test_an_own_id_inside_a_query_is_put_before_the_querys():
    stamps = Stamper("query", 7, 3, stamp_id="second")(batch(body=["a"]), 0)

    assert stamps[STAMP].to_pylist() == ["second/query/7/3/0"]
