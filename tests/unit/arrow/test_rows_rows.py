"""Rows encoded column by column have the same bytes as messages encoded one by one."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools import ProducerConfig
from rmqtools.arrow.check_rows import check_rows
from rmqtools.arrow.encode_rows import encode_rows, user_properties
from rmqtools.arrow.rows import rows_of
from rmqtools.engine.producer.encode_send import Encoder
from rmqtools.errors import MessageRejectedError
from rmqtools.model.encoded_batch import MsgIds
from rmqtools.protocol.messages.message_id import UniqueIdGenerator
from tests.unit.arrow.broken_texts import broken

PROPERTIES = pa.map_(pa.string(), pa.string())
NOW_MS = 1_700_000_000_000
_CHARACTERS = st.characters(exclude_characters="\x01\x02|", exclude_categories=["Cs"])
_BLANKS = "".join(map(chr, range(0x21)))  # no tag begins or ends with one
TEXT = st.none() | st.text(_CHARACTERS, max_size=5).map(lambda text: text.strip(_BLANKS))
NAME = st.sampled_from(["colour", "имя", "鍵", "a b"])
VALUE = st.text(
    st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=4
)
ROW = st.tuples(
    st.binary(min_size=1, max_size=20), TEXT, TEXT, TEXT, st.none() | st.dictionaries(NAME, VALUE, max_size=3)
)


def batch_of(rows) -> pa.RecordBatch:
    body, tags, keys, sharding, properties = zip(*rows, strict=True)
    maps = [None if one is None else list(one.items()) for one in properties]
    return pa.record_batch(
        {
            "body": pa.array(body, pa.binary()),
            "tags": pa.array(tags, pa.string()),
            "keys": pa.array(keys, pa.string()),
            "shardingKey": pa.array(sharding, pa.string()),
            "properties": pa.array(maps, PROPERTIES),
        }
    )


def ids() -> UniqueIdGenerator:
    return UniqueIdGenerator("127.0.0.1", 5, 7)


def both_ways(batch: pa.RecordBatch) -> tuple[bytes, bytes]:
    rows = rows_of(batch, topic="T")
    encoded = encode_rows(rows, check_rows(rows, 100), ids().reserve(len(rows), NOW_MS))
    one_by_one = Encoder(ProducerConfig(name_server="h:1"), ids().next, lambda: NOW_MS)
    messages = [rows.message(row) for row in range(len(rows))]
    return bytes(encoded.data), bytes(one_by_one.encode_batch(messages).body)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(pa.array(["red", None]), id="null"),
        pytest.param(pa.DictionaryArray.from_arrays([0, 1], pa.array(["red", None])), id="of-a-dictionary"),
    ],
)
def test_an_extra_property_without_a_value_is_none(values):
    rows = rows_of(pa.record_batch({"body": pa.array([b"a", b"b"])}), topic="T", extra={"colour": values})

    assert user_properties(rows).to_pylist() == [b"colour\x01red\x02", b""]


@given(st.lists(ROW, min_size=1, max_size=8), st.integers(0, 7))
def test_both_ways_give_the_same_bytes_also_of_a_slice(rows, begin):
    fast, plain = both_ways(batch_of(rows).slice(min(begin, len(rows) - 1)))

    assert fast == plain


def test_a_row_of_nothing_but_a_body():
    fast, plain = both_ways(pa.record_batch({"body": pa.array(["grüß"])}))

    assert fast == plain


def test_ids_count_on_past_the_last_of_their_digits():
    generator = ids()
    generator.reserve(0xFFFE, NOW_MS)

    taken = generator.reserve(4, NOW_MS)

    assert [one[-4:] for one in taken] == ["FFFE", "FFFF", "0000", "0001"]
    assert generator.next(NOW_MS)[-4:] == "0002"
    assert list(taken[1:3]) == [taken[1], taken[2]]


def test_more_rows_than_one_digit_counts_have_ids_of_their_own():
    rows = rows_of(pa.record_batch({"body": pa.array([b"x"] * 300)}), topic="T")
    msg_ids = MsgIds("A" * 28, 0xFF80, 300)

    encoded = encode_rows(rows, user_properties(rows), msg_ids)

    assert all(msg_ids[row].encode() in bytes(encoded.slice(row, row + 1)) for row in range(300))


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        pytest.param("tags", "a||b", "row 12: tags 'a||b': a message has one tag", id="two-tags"),
        pytest.param("tags", "a\x01", r"row 12: tags 'a\\x01' has", id="separator-in-tags"),
        pytest.param("keys", "a\x02", "row 12: keys", id="separator-in-keys"),
        pytest.param("shardingKey", "\x01", "row 12: sharding_key", id="separator-in-sharding-key"),
        pytest.param("properties", [("TAGS", "x")], "row 12: property 'TAGS' is reserved", id="reserved"),
        pytest.param("properties", [("n", "")], "row 12: property 'n' is empty", id="empty-value"),
        pytest.param("properties", [("n", None)], "row 12: property 'n' is null", id="null-value"),
        pytest.param("properties", [("", "v")], "row 12: a property with value 'v' has an", id="empty-name"),
        pytest.param("properties", [("n", "\x02")], "row 12: property 'n'", id="separator-in-value"),
        pytest.param(
            "properties", [("n", "v" * 33_000)], "row 12: tags, keys, sharding_key and", id="too-long"
        ),
        pytest.param("properties", [("__SHARDINGKEY", "k")], "and shardingKey: give one", id="key-twice"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_row(column, value, text):
    good = (b"x", "t", "k", "s", {"n": "v"})
    batch = batch_of([good] * 3)
    bad = pa.array([batch.column(column)[0].as_py()] * 2 + [value], batch.column(column).type)
    batch = batch.set_column(batch.schema.names.index(column), column, bad)

    with pytest.raises(MessageRejectedError, match=text):
        check_rows(rows_of(batch, topic="T", first_row=10), 100)


BROKEN = (b"", None, b"k\xff")


def properties(names, values):
    """Properties of three rows; the second has none."""
    return {"properties": pa.MapArray.from_arrays([0, 1, 1, 2], names, values)}


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        *[
            pytest.param({name: broken(*BROKEN)}, rf"row 12: column '{name}' .*b'k\\xff'.* UTF-8", id=name)
            for name in ("tags", "keys", "shardingKey")
        ],
        pytest.param(
            {"topic": broken(b"T", b"T", b"k\xff")}, r"row 12: column 'topic' .*b'k\\xff'", id="topic"
        ),
        pytest.param(
            {"brokerName": broken(*BROKEN), "queueId": pa.array([0, None, 0], pa.int32())},
            r"row 12: column 'brokerName' .*b'k\\xff'",
            id="broker-name",
        ),
        pytest.param(
            properties(pa.array(["n", "n"]), broken(b"v", b"k\xff")),
            r"row 12: column 'properties' .*b'k\\xff'",
            id="property-value",
        ),
        pytest.param(
            properties(broken(b"n", b"k\xff"), pa.array(["v", "v"])),
            r"row 12: column 'properties' .*b'k\\xff'",
            id="property-name",
        ),
        pytest.param({"tags": broken(b"ok", b"\xc3", b"\xb6")}, r"row 11: column 'tags'", id="cut-character"),
    ],
)
def test_bytes_that_are_no_text_are_refused_by_row_and_column(columns, text):
    batch = pa.record_batch({"body": pa.array([b"a"] * 3)} | columns)
    topic = None if "topic" in columns else "T"

    with pytest.raises(MessageRejectedError, match=text):
        check_rows(rows_of(batch, topic=topic, first_row=10), 100)


def test_properties_of_ones_own_making_that_are_no_text_are_refused_by_row_and_name():
    extra = {"place": broken(b"ok", b"k\xff")}

    with pytest.raises(MessageRejectedError, match=r"row 11: property 'place' .*b'k\\xff'"):
        check_rows(
            rows_of(pa.record_batch({"body": pa.array([b"a"] * 2)}), topic="T", first_row=10, extra=extra),
            100,
        )


@pytest.mark.parametrize(
    ("topics", "text"),
    [
        pytest.param(["T", None], "row 1: topic is null", id="null"),
        pytest.param(["T", "no/slash"], "row 1: topic 'no/slash' has an illegal", id="illegal"),
        pytest.param(["T", "SCHEDULE_TOPIC_XXXX"], "row 1: topic 'SCHEDULE_TOPIC_XXXX'", id="forbidden"),
    ],
)
def test_topics_are_checked_by_row(topics, text):
    batch = pa.record_batch({"body": pa.array([b"a"] * 2), "topic": pa.array(topics)})

    with pytest.raises(MessageRejectedError, match=text):
        check_rows(rows_of(batch), 100)
