import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.model.codes import BoundaryType
from rmqtools.protocol.headers.codec import decode_header, encode_header, header_fields, parse_int
from rmqtools.protocol.headers.offset import (
    GetMaxOffsetRequestHeader,
    OffsetResponseHeader,
    SearchOffsetRequestHeader,
)
from rmqtools.protocol.headers.pull import PullMessageResponseHeader
from rmqtools.protocol.headers.send import EndTransactionRequestHeader
from rmqtools.protocol.headers.topic import CreateTopicRequestHeader
from tests.support.headers import HEADERS

PULLED = {"suggestWhichBrokerId": "0", "nextBeginOffset": "8", "minOffset": "1", "maxOffset": "9"}
CLASSES = [*HEADERS.values()]


@pytest.mark.parametrize(("text", "member"), [("upper", BoundaryType.UPPER), ("MIDDLE", None), ("", None)])
def test_the_name_of_an_enumeration_is_read_in_any_case_and_an_unknown_one_as_none(text, member):
    fields = {"topic": "T", "queueId": "0", "timestamp": "1", "boundaryType": text}

    assert decode_header(SearchOffsetRequestHeader, fields).boundary_type == member


def test_unknown_fields_are_passed_over():
    header = decode_header(PullMessageResponseHeader, PULLED | {"fromTheFuture": "1"})

    assert (header.next_begin_offset, header.min_offset, header.max_offset) == (8, 1, 9)


@pytest.mark.parametrize("name", PULLED)
def test_a_missing_required_field_is_named(name):
    with pytest.raises(ProtocolError, match=f"PullMessageResponseHeader.*{name}.*missing"):
        decode_header(PullMessageResponseHeader, {**PULLED, name: None})


@pytest.mark.parametrize("text", ["", "x", " 1", "1L", "1_0", "9" * 19, "9" * 5000, "0x1", "١"])
def test_a_text_that_is_no_number_is_named(text):
    with pytest.raises(ProtocolError, match=r"OffsetResponseHeader.*offset"):
        decode_header(OffsetResponseHeader, {"offset": text})


@pytest.mark.parametrize(("text", "value"), [("+1", 1), ("-0", 0), ("007", 7)])
def test_numbers_are_read_as_java_reads_them(text, value):
    assert parse_int(text, 32) == value


@given(st.integers(-(1 << 70), 1 << 70), st.sampled_from([32, 64]))
def test_numbers_must_fit_their_bits(number, bits):
    fits = -(1 << (bits - 1)) <= number < 1 << (bits - 1)
    try:
        assert parse_int(str(number), bits) == number
    except ValueError:
        assert not fits
    else:
        assert fits


@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("yes", False), ("", False)])
def test_whatever_is_not_true_is_false(text, value):
    fields = {"topic": "T", "queueId": "0", "committed": text}

    assert decode_header(GetMaxOffsetRequestHeader, fields).committed is value


@pytest.mark.parametrize("header_class", CLASSES, ids=lambda cls: cls.__name__)
def test_every_header_decodes_to_what_was_encoded(header_class):
    samples = {
        "text": "5",
        "topic_filter_type": "SINGLE_TAG",
        "commit_or_rollback": "8",
        "boundary_type": "LOWER",
    }
    fields = {f.wire: samples.get(f.name, samples["text"]) for f in header_fields(header_class)}
    header = decode_header(header_class, fields)

    assert decode_header(header_class, encode_header(header)) == header


def test_values_java_refuses_are_refused():
    ends = {"producerGroup": "g", "tranStateTableOffset": "0", "commitLogOffset": "0", "msgId": "m"}
    with pytest.raises(ProtocolError, match="commit_or_rollback is 3"):
        decode_header(EndTransactionRequestHeader, ends | {"commitOrRollback": "3"})

    topic = CreateTopicRequestHeader(
        topic="T",
        default_topic="TBW102",
        read_queue_nums=1,
        write_queue_nums=1,
        perm=6,
        topic_filter_type="NO_SUCH",
        order=False,
    )
    with pytest.raises(ProtocolError, match="NO_SUCH"):
        decode_header(CreateTopicRequestHeader, encode_header(topic))


@given(st.sampled_from(CLASSES), st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5))
def test_any_fields_give_a_header_or_a_protocol_error(header_class, fields):
    named = {f.wire: fields.get(f.wire, "7") for f in header_fields(header_class)}
    for given_fields in (fields, named | fields):
        try:
            assert isinstance(decode_header(header_class, given_fields), header_class)
        except ProtocolError as error:
            assert header_class.__name__ in str(error)  # noqa: PT017 # either outcome is right
