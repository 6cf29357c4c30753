"""Messages in a Parquet file."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rmqtools.arrow import ParquetFile, holds_read_messages
from rmqtools.arrow.files import read_file
from rmqtools.errors import ConfigError
from rmqtools.testing import stored_message


@pytest.mark.process
def test_row_groups_are_large_also_if_messages_come_one_by_one(tmp_path):
    path = tmp_path / "many.parquet"

    with ParquetFile(path) as file:
        for offset in range(10_005):
            file.write([stored_message("T", offset, body=b"%d" % offset)])

    metadata = pq.read_metadata(path)
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [10_000, 5]
    assert pq.read_table(path, columns=["body"])["body"][-1].as_py() == b"10004"


def test_row_groups_of_large_messages_have_few_rows(tmp_path):
    path, body = tmp_path / "large.parquet", bytes(4 * 1024 * 1024)

    with ParquetFile(path) as file:
        file.write([stored_message("T", offset, body=body) for offset in range(20)])

    metadata = pq.read_metadata(path)
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [16, 4]


def test_what_was_written_can_be_read_after_an_error(tmp_path):
    path = tmp_path / "some.parquet"

    def interrupted() -> None:
        with ParquetFile(path) as file:
            file.write([stored_message("T", 7, body=b"x")])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert pq.read_table(path)["queueOffset"].to_pylist() == [7]


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="cannot be written"):
        ParquetFile(tmp_path / "no" / "file.parquet")


@pytest.mark.parametrize(
    ("columns", "expected"), [({"body", "queueOffset", "storeTimestamp"}, True), ({"body", "tags"}, False)]
)
def test_a_file_of_read_messages_has_their_places(tmp_path, columns, expected):
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({name: [1] for name in columns}), path)

    assert holds_read_messages(path) is expected


def test_what_is_no_parquet_file_has_no_read_messages(tmp_path):
    path = tmp_path / "file.parquet"
    path.write_bytes(b"body,tags\n")

    assert not holds_read_messages(path)


def test_words_that_often_stand_for_nothing_are_texts_of_a_csv_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("body,tags,keys\nnull,NA,NaN\nx,,\n")

    (batch,) = read_file(path, "csv")

    assert batch.to_pylist() == [
        {"body": "null", "tags": "NA", "keys": "NaN"},
        {"body": "x", "tags": None, "keys": None},
    ]


def test_large_rows_and_cells_with_several_lines_are_read_from_a_csv_file(tmp_path):
    path = tmp_path / "rows.csv"
    bodies = ["x" * 4 * 1024 * 1024, *(f"{number}\n{'y' * 1000}\n" for number in range(20_000))]
    path.write_text("body\n" + "".join(f'"{body}"\n' for body in bodies))

    found = [body for batch in read_file(path, "csv") for body in batch["body"].to_pylist()]

    assert found == bodies
