"""The offsets in a checkpoint: sorted, of a version, and telling where a batch begins."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools import MessageQueue
from rmqtools.errors import ConfigError
from spark_connector.read.loss import QueueMark
from spark_connector.read.stream_offsets import StreamOffsets, batch_begin

A, B, NEW = MessageQueue("T", "a", 0), MessageQueue("T", "b", 10), MessageQueue("U", "a", 0)

queues = st.builds(
    MessageQueue, st.sampled_from(["T", "метка", "%RETRY%g"]), st.sampled_from("ab"), st.integers(0, 20)
)
numbers = st.integers(0, 2**63 - 1)
offsets = st.dictionaries(queues, numbers)
marks = st.dictionaries(queues, st.builds(QueueMark, numbers, numbers))


@given(offsets, offsets, marks)
def test_what_is_written_is_read_back(next_, begin, marks):
    written = StreamOffsets(next_, begin, marks)

    assert StreamOffsets.from_json(json.loads(json.dumps(written.to_json()))) == written


@given(offsets, st.randoms())
def test_equal_offsets_have_equal_text(next_, random):
    shuffled = list(next_.items())
    random.shuffle(shuffled)

    assert json.dumps(StreamOffsets(dict(shuffled)).to_json()) == json.dumps(StreamOffsets(next_).to_json())


def test_the_text_is_sorted_and_has_a_version():
    text = json.dumps(StreamOffsets({B: 7, A: 42}, {B: 1}).to_json())

    assert text == (
        '{"begin": {"T": {"b": {"10": 1}}}, "marks": {}, '
        '"offsets": {"T": {"a": {"0": 42}, "b": {"10": 7}}}, "version": "1.3"}'
    )


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "1.7"])
def test_minor_versions_are_read_older_and_newer(version):
    given = {"offsets": {"T": {"a": {"0": 42}}}, "version": version, "something": "new"}

    assert StreamOffsets.from_json(given) == StreamOffsets({A: 42})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"version": "2.0", "offsets": {}}, "offsets of version 2.0", id="newer-major"),
        pytest.param({"index": 3}, r"no offsets of format rocketmq \(version None\)", id="another-source"),
        pytest.param({"version": "one", "offsets": {}}, "'one'", id="no-number"),
        pytest.param({"version": "1.1"}, "cannot be read: 'offsets'", id="no-offsets"),
        pytest.param(
            {"version": "1.1", "offsets": {"T": {"a": {"0": -1}}}}, "offset -1 of T/a/0", id="negative"
        ),
        pytest.param({"version": "1.1", "offsets": {"T": {"a": [1]}}}, "want an object", id="other-shape"),
        pytest.param({"version": "1.3", "offsets": {}, "marks": {"T": 3}}, "cannot be read", id="no-marks"),
        pytest.param(
            {"version": "1.3", "offsets": {}, "marks": {"T": {"a": {"0": {"offset": 3}}}}},
            "cannot be read: 'time'",
            id="half-a-mark",
        ),
    ],
)
def test_what_cannot_be_gone_on_from_is_refused(given, says):
    with pytest.raises(ConfigError, match=says):
        StreamOffsets.from_json(given)


def test_a_batch_begins_where_the_last_one_ended():
    assert batch_begin(StreamOffsets({A: 5, B: 6}, {B: 2}), StreamOffsets({A: 8, B: 6})) == {A: 5, B: 6}


def test_the_first_batch_begins_where_its_end_says_whatever_a_restarted_query_starts_at():
    again, planned = StreamOffsets({A: 20}, {A: 20}), StreamOffsets({A: 15}, {A: 10})

    assert batch_begin(again, planned) == {A: 10}


def test_a_new_queue_begins_where_the_end_says():
    assert batch_begin(StreamOffsets({A: 5}), StreamOffsets({A: 5, NEW: 9}, {NEW: 3})) == {A: 5, NEW: 3}


def test_equal_start_and_end_are_an_empty_batch_also_with_begins():
    ended = StreamOffsets({A: 15}, {A: 10})

    assert batch_begin(ended, ended) == {A: 15}


def test_a_queue_of_unknown_begin_is_named():
    with pytest.raises(ConfigError, match="where to begin U/a/0"):
        batch_begin(StreamOffsets({A: 5}), StreamOffsets({A: 5, NEW: 9}))
