import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import MessageRejectedError
from rmqtools.protocol.messages.recall_handle import RecallHandle, parse_recall_handle

NAMES = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=20)
ID = "7F0000010001" + "0" * 20


def handle(text: str | bytes) -> str:
    """As a broker makes it (RecallMessageHandle.buildHandle)."""
    return base64.urlsafe_b64encode(text if isinstance(text, bytes) else text.encode()).decode()


@given(NAMES, NAMES, st.integers(0, 2**63 - 1), NAMES)
def test_a_handle_says_topic_broker_time_and_id(topic, broker_name, deliver_at_ms, msg_id):
    text = handle(f"v1 {topic} {broker_name} {deliver_at_ms} {msg_id}")

    expected = RecallHandle(topic, broker_name, deliver_at_ms, msg_id)
    assert [parse_recall_handle(text), parse_recall_handle(text.rstrip("="))] == [expected, expected]


def test_the_alphabet_is_that_of_urls():
    text = handle("v1 t?>t~~~ b 1 m")

    assert "_" in text or "-" in text
    assert parse_recall_handle(text).topic == "t?>t~~~"


def test_words_after_the_fifth_are_passed_over_as_java_does():
    assert parse_recall_handle(handle(f"v1 t b 1 {ID} more")) == RecallHandle("t", "b", 1, ID)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(handle("v1 a b 1"), id="four-words"),
        pytest.param(handle("v1 a b 1 "), id="no-id"),
        pytest.param(handle("v2 a b 1 d"), id="version"),
        pytest.param(handle("v1 a b c d"), id="no-time"),
        pytest.param(handle(b"v1 a b 1 \xff"), id="no-text"),
        pytest.param("v1 a b 1 d", id="not-encoded"),
        pytest.param(handle("v1 a b 1 d") + "\n", id="line-end"),
        pytest.param("ключ", id="not-ascii"),
        pytest.param("a", id="one-letter"),
    ],
)
def test_what_is_no_handle_is_refused_by_name(text):
    with pytest.raises(MessageRejectedError, match=r"SendResult\.recall_handle"):
        parse_recall_handle(text)


@pytest.mark.parametrize("text", ["", None])
def test_a_message_without_a_handle_is_explained(text):
    with pytest.raises(MessageRejectedError, match=r"messages with a delay.*5\.3\.2"):
        parse_recall_handle(text)
