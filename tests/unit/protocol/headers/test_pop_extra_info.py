import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.protocol.headers.pop_extra_info import (
    PopExtraInfo,
    format_extra_info,
    offset_key,
    parse_extra_info,
    parse_msg_offset_info,
    parse_offset_info,
    queue_key,
    topic_type,
)

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
INFOS = st.builds(
    PopExtraInfo,
    start_offset=INT64,
    pop_time=INT64,
    invisible_time=INT64,
    revive_qid=INT32,
    topic_type=st.sampled_from("012"),
    broker_name=st.text("abc-0", min_size=1),
    queue_id=INT32,
    queue_offset=st.none() | INT64,
)


def info(topic: str, queue_offset: int | None = None) -> PopExtraInfo:
    return PopExtraInfo(
        start_offset=1,
        pop_time=2,
        invisible_time=3,
        revive_qid=4,
        topic_type=topic_type(topic),
        broker_name="broker-a",
        queue_id=5,
        queue_offset=queue_offset,
    )


# What ExtraInfoUtil of the Java client 5.5.0 answers.
@pytest.mark.parametrize(
    ("topic", "mark"), [("T", "0"), ("%RETRY%g_T", "1"), ("%RETRY%g+T", "2"), ("a+b", "0")]
)
def test_the_texts_are_javas(topic, mark):
    assert format_extra_info(info(topic)) == f"1 2 3 4 {mark} broker-a 5"
    assert format_extra_info(info(topic, 6)) == f"1 2 3 4 {mark} broker-a 5 6"
    assert queue_key(topic_type(topic), 5) == f"{mark}@5"
    assert offset_key(topic_type(topic), 5, 6) == f"{mark}@qo5%6"


@pytest.mark.parametrize("stored", ["T", "%RETRY%g_T", "%RETRY%g+T"])
def test_the_real_topic_is_where_the_message_is_stored(stored):
    assert info(stored).real_topic("T", "g") == stored


@given(INFOS)
def test_what_is_formatted_parses_to_the_same(made):
    assert parse_extra_info(format_extra_info(made)) == made


@given(st.text() | st.text("0123 ;@-", max_size=40))
def test_any_text_is_parsed_or_refused(text):
    for parse in (parse_extra_info, parse_offset_info, parse_msg_offset_info):
        try:
            parse(text)
        except ProtocolError:
            continue


def test_parts_after_the_eighth_are_passed_over():
    assert parse_extra_info("1 2 3 4 0 broker-a 5 6 new") == info("T", 6)


@pytest.mark.parametrize("text", ["", "1 2 3 4 0 broker-a", "1 2 3 4 0 broker-a x", "1 2 3 4294967296 0 b 5"])
def test_a_text_of_another_form_is_refused(text):
    with pytest.raises(ProtocolError, match="extra info"):
        parse_extra_info(text)


@pytest.mark.parametrize("text", [None, "", ";"])
def test_no_text_is_an_empty_table(text):
    assert (parse_offset_info(text), parse_msg_offset_info(text)) == ({}, {})


def test_the_texts_of_an_answer_are_tables():
    assert parse_offset_info("0 5 100;1 6 200;") == {"0@5": 100, "1@6": 200}
    assert parse_offset_info("0 5 1;0 qo6%200 2") == {"0@5": 1, offset_key("0", 6, 200): 2}
    assert parse_msg_offset_info("0 5 100,101;0 6 200") == {"0@5": (100, 101), "0@6": (200,)}


@pytest.mark.parametrize("text", ["0 1", "0 1 x", "0 1 2;0 1 3", "0 1 2 3", ";0 1 2"])
@pytest.mark.parametrize("parse", [parse_offset_info, parse_msg_offset_info])
def test_texts_of_another_form_are_refused(parse, text):
    with pytest.raises(ProtocolError, match="pop info"):
        parse(text)
