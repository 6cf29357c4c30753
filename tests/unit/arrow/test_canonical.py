"""Rows of every Arrow type that can carry them are sent as rows of the canonical types are."""

import mmap

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from rmqtools.arrow import WRITE_COLUMNS, batch_to_messages, canonical_batches, read_file, send_batches
from rmqtools.errors import MessageRejectedError
from tests.unit.arrow.fake_producer import FakeProducer

MIB = 1024 * 1024
GIB = 1024 * MIB

TEXTS = {
    "large": pa.large_string(),
    "view": pa.string_view(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "dictionary-of-large": pa.dictionary(pa.uint8(), pa.large_string()),
}
BODIES = {
    "large": pa.large_binary(),
    "view": pa.binary_view(),
    "dictionary": pa.dictionary(pa.int16(), pa.binary()),
    "dictionary-of-large": pa.dictionary(pa.int64(), pa.large_binary()),
}
NUMBERS = {"dictionary": pa.dictionary(pa.int8(), pa.int32())}
MAPS = {
    "large": pa.map_(pa.large_string(), pa.large_string()),
    "view": pa.map_(pa.string_view(), pa.string_view()),
    "dictionary": pa.map_(TEXTS["dictionary"], TEXTS["dictionary"]),
    "mixed": pa.map_(pa.string(), pa.large_string()),
}
LONG = "more than the twelve bytes that a view holds itself"
COLUMNS = {  # a null first, in the middle and last, empty values, values in other than ASCII
    "topic": (["T", "U", "T", "T", "U", "T"], TEXTS),
    "tags": ([None, "a", None, "", LONG, None], TEXTS),
    "keys": ([None, "k1 k2", "", LONG, "鍵", None], TEXTS),
    "shardingKey": ([None, "s", None, LONG, "s", None], TEXTS),
    "brokerName": ([None, "a", "b", None, "a", None], TEXTS),
    "queueId": ([None, 1, 0, None, 1, None], NUMBERS),
    "delayLevel": ([None, 3, 0, None, 3, None], NUMBERS),
    "properties": ([None, [("a", "b")], [], [("c", LONG), ("d", "鍵")], [("a", "b")], None], MAPS),
}
TEXT_BODIES = ["first", "x", LONG, "鍵", "x", "last"]
ALL = {name: values for name, (values, _) in COLUMNS.items()} | {"body": [t.encode() for t in TEXT_BODIES]}
CASES = [
    *((name, kind, values) for name, (values, kinds) in COLUMNS.items() for kind in kinds.values()),
    *(("body", kind, ALL["body"]) for kind in BODIES.values()),
    *(("body", kind, TEXT_BODIES) for kind in TEXTS.values()),
]


def array(values, kind):
    """An array of a type that ``pa.array`` may not make itself; a slice of a longer one."""
    if pa.types.is_map(kind):
        maps = [*values[:2], *values]
        pairs = [pair for one in maps for pair in one or ()]
        ends = np.cumsum([0, *(len(one or ()) for one in maps)], dtype=np.int32)
        names, texts = ([pair[place] for pair in pairs] for place in (0, 1))
        parts = array(names, kind.key_type), array(texts, kind.item_type)
        missing = pa.array([one is None for one in maps])
        return pa.MapArray.from_arrays(pa.array(ends), *parts, mask=missing)[2:]
    if pa.types.is_dictionary(kind):
        plain = pa.array([*values[:2], *values], kind.value_type).dictionary_encode()
        indices = plain.indices.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, plain.dictionary)[2:]
    return pa.array([*values[:2], *values], kind)[2:]


def batch_of(columns, **kinds):
    types = {name: kinds.get(name, WRITE_COLUMNS[name][0]) for name in columns}
    return pa.record_batch({name: array(values, types[name]) for name, values in columns.items()})


def sent(*batches, **options):
    """Requests as brokers receive them, byte by byte."""
    producer = FakeProducer()
    send_batches(producer, batches, **options)
    return [
        (p.topic, p.queue, p.message, None if p.message else bytes(p.body))
        for ps in producer.sent
        for p in ps
    ]


@pytest.mark.parametrize(("name", "kind", "values"), CASES, ids=lambda value: str(value)[:40])
def test_a_column_of_any_type_is_sent_as_one_of_the_canonical_type(name, kind, values):
    batch = batch_of(ALL | {name: values}, **{name: kind})

    assert batch.schema.field(name).type == kind
    assert sent(batch) == sent(batch_of(ALL))
    assert batch_to_messages(batch) == batch_to_messages(batch_of(ALL))


@pytest.mark.parametrize("of", ["large", "view", "dictionary"])
def test_all_columns_of_other_types_are_sent_as_canonical_ones(of):
    kinds = {name: kinds[of] for name, (_, kinds) in COLUMNS.items() if of in kinds} | {"body": BODIES[of]}
    batch = batch_of(ALL, **kinds)

    assert sent(batch[:4], batch[4:]) == sent(batch_of(ALL)[:4], batch_of(ALL)[4:])
    assert list(canonical_batches([batch])) == [batch_of(ALL)]


def test_a_canonical_batch_is_passed_on_itself():
    batch = batch_of(ALL)

    assert [one is batch for one in canonical_batches([batch])] == [True]


def test_properties_of_a_caller_may_have_any_type():
    batch, texts = batch_of({"body": [b"a", b"b"]}), ["x", LONG]

    def with_texts(kind):
        return sent(batch, topic="T", extra_properties=lambda part, row: {"P": array(texts, kind)})

    assert [with_texts(kind) for kind in TEXTS.values()] == [with_texts(pa.string())] * len(TEXTS)


@pytest.mark.parametrize("of", ["large", "view", "dictionary"])
def test_an_empty_batch_sends_nothing_and_a_wrong_type_is_refused_by_its_name(of):
    assert sent(batch_of(ALL, body=BODIES[of])[:0]) == []

    with pytest.raises(MessageRejectedError, match="column 'tags' is binary: cast it to string"):
        batch_to_messages(batch_of(ALL | {"tags": ALL["body"]}, tags=BODIES[of]))


def large_rows(*ends):
    """Rows of zeros, as one large column of 4 GiB; the system gives memory to pages that are used only."""
    offsets, data = np.array([0, *ends], np.int64), pa.py_buffer(mmap.mmap(-1, 4 * GIB))
    column = pa.Array.from_buffers(pa.large_binary(), len(ends), [None, pa.py_buffer(offsets), data])
    return pa.record_batch({"body": column})


def test_a_large_column_is_not_copied_and_its_bytes_may_lie_beyond_2_gib():
    rows = large_rows(3 * GIB, 3 * GIB + 2, 3 * GIB + 5)

    (batch,) = canonical_batches([rows[1:]])

    assert batch.column("body") == pa.array([bytes(2), bytes(3)])
    assert batch.column("body").buffers()[2].address == rows.column("body").buffers()[2].address + 3 * GIB


def test_rows_of_more_than_2_gib_become_batches_that_offsets_of_32_bits_reach():
    rows = large_rows(GIB, 2 * GIB, 3 * GIB, 3 * GIB + 4 * MIB, 3 * GIB + 9 * MIB)

    parts = list(canonical_batches([rows]))

    assert [part.num_rows for part in parts] == [1, 1, 1, 2]
    assert [part.nbytes // MIB for part in parts] == [1024, 1024, 1024, 9]


def test_a_value_of_2_gib_is_refused():
    with pytest.raises(MessageRejectedError, match="column 'body' has a value of 2147483648 bytes"):
        list(canonical_batches([large_rows(2 * GIB)]))


@pytest.mark.process
def test_a_dictionary_is_written_out_in_portions():
    values = pa.array([bytes(MIB), b"x"], pa.large_binary())
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 40 + [1] * 5), values)

    parts = list(canonical_batches([pa.record_batch({"body": column})]))

    assert [part.num_rows for part in parts] == [16, 16, 13]


@pytest.mark.parametrize("of", ["large", "view", "dictionary"])
def test_a_parquet_file_keeps_these_types_and_is_sent_alike(tmp_path, of):
    kinds = {"body": BODIES[of], "tags": TEXTS[of]}
    columns = {name: ALL[name] for name in ("body", "tags", "keys")}
    pa.parquet.write_table(pa.Table.from_batches([batch_of(columns, **kinds)]), tmp_path / "rows.parquet")

    found = sent(*read_file(tmp_path / "rows.parquet", "parquet"), topic="T")

    assert found == sent(batch_of(columns), topic="T")
