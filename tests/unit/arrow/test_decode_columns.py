"""Every column of read rows: the same values alone and with the others, however a message is decoded."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from rmqtools import MessageBlock
from rmqtools.arrow import decode_block, select_columns
from rmqtools.arrow.rows_to_batch import rows_to_batch
from rmqtools.model.read_columns import COLUMN_BY_NAME, READ_COLUMNS
from rmqtools.protocol.messages.inner_batch import unwrap
from rmqtools.protocol.messages.stored import decode_message
from tests.unit.arrow.stored_messages import (
    BORN_V6,
    COMPRESSED,
    QUEUE,
    Stored,
    block_of,
    inner_batch,
    properties_of,
)

_PROPERTIES = properties_of(KEYS="k1 k2", UNIQ_KEY="7F01", TAGS="t", colour="blue")
BLOCKS = {
    "plain": block_of([Stored(properties=_PROPERTIES, queue_offset=number) for number in range(3)]),
    "compressed": block_of([Stored(properties=_PROPERTIES, sys_flag=COMPRESSED, body=b"ab" * 50)]),
    "empty-and-marked-compressed": block_of([Stored(sys_flag=COMPRESSED, body=b"")]),
    "ipv6": block_of([Stored(properties=_PROPERTIES, sys_flag=BORN_V6)]),
    "batched": block_of([inner_batch([b"a", b"b"], queue_offset=5)]),
    "of-every-kind": block_of(
        [Stored(properties=_PROPERTIES), Stored(sys_flag=COMPRESSED), inner_batch([b"a"], queue_offset=9)]
    ),
}


def looked_up(block: MessageBlock, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a look-up by key, which are made of decoded messages."""
    messages = [one for start in block.starts for one in unwrap(decode_message(block.buffer, start))]
    return rows_to_batch(messages, QUEUE, schema)


@pytest.mark.parametrize("name", COLUMN_BY_NAME)
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_column_has_the_same_values_alone_with_others_and_looked_up(name: str, kind: str):
    block, alone, every = BLOCKS[kind], select_columns(name), select_columns(*COLUMN_BY_NAME)
    try:
        found, among_others = decode_block(block, alone), decode_block(block, every)
    except KeyError as error:
        pytest.fail(
            f"column {error} has no values in _plain_batch of rmqtools/arrow/decode.py: add them",
            pytrace=False,
        )

    assert found.column(name).equals(among_others.column(name))
    assert found.equals(looked_up(block, alone))


def test_the_page_on_copies_names_the_columns_that_no_write_takes():
    page = Path(__file__).parents[3].joinpath("docs", "spark.md").read_text()
    (row,) = re.findall(r"^\| (.*) \| set by broker and client \|$", page, re.MULTILINE)

    set_by_others = {column.name for column in READ_COLUMNS if not column.is_writable}
    assert set(re.findall(r"`(\w+)`", row)) == set_by_others, "correct the table of copies in docs/spark.md"


def test_rows_to_write_may_have_these_columns_of_a_read():
    writable = [column.name for column in READ_COLUMNS if column.is_writable]
    assert writable == ["topic", "brokerName", "queueId", "body", "tags", "keys", "properties"]
