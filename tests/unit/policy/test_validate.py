from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqtools.errors import MessageRejectedError
from rmqtools.model.message import Message
from rmqtools.model.names import MAX_TOPIC_LENGTH
from rmqtools.policy.validate import (
    MAX_GROUP_LENGTH,
    check_message,
    check_messages,
    check_name,
)

LIMIT = 4 * 1024 * 1024


def message(**changes) -> Message:
    return Message(**{"topic": "T", "body": b"x"} | changes)


def test_a_message_with_everything_passes():
    check_message(message(tags="t", keys=["a", "b"], properties={"ключ": "值"}, flag=7), LIMIT)


REFUSED = pytest.mark.parametrize(
    ("changes", "text"),
    [
        pytest.param({"topic": ""}, "topic '' is empty", id="no-topic"),
        pytest.param({"topic": "a b"}, "illegal character", id="space-in-topic"),
        pytest.param({"topic": "t" * 128}, "128 characters: at most 127", id="long-topic"),
        pytest.param({"topic": None}, "topic None", id="none-topic"),
        pytest.param({"body": b""}, "body is empty", id="empty-body"),
        pytest.param({"body": None}, "body is NoneType: want bytes", id="none-body"),
        pytest.param({"body": "text"}, "body is str: want bytes", id="text-body"),
        pytest.param({"body": bytes(LIMIT + 1)}, "max_message_bytes=4194304", id="large-body"),
        pytest.param({"tags": "a||b"}, "has one tag", id="two-tags"),
        pytest.param({"tags": "a\x01"}, "tags 'a", id="separator-in-tags"),
        pytest.param({"keys": "a\x02"}, "keys 'a", id="separator-in-keys"),
        pytest.param({"keys": [1]}, "keys is int: want text", id="number-key"),
        pytest.param({"keys": 1}, "keys is int: want text, or several in a list", id="number-keys"),
        pytest.param(
            {"keys": iter(["a"])}, "keys is list_iterator: want text, or several", id="iterator-keys"
        ),
        pytest.param({"tags": 0}, "tags is int: want text", id="number-tags"),
        pytest.param({"properties": {1: "a"}}, "property name is int: want text", id="number-name"),
        pytest.param({"sharding_key": "a\x01"}, "sharding_key 'a", id="separator-in-sharding-key"),
        pytest.param({"sharding_key": 1}, "sharding_key is int: want text", id="number-sharding-key"),
        pytest.param({"sharding_key": "x" * 32768}, "at most 32255", id="large-sharding-key"),
        pytest.param({"properties": {"a\x01": "b"}}, "property name", id="separator-in-name"),
        pytest.param({"properties": {"a": "b\x02"}}, "property 'a' 'b", id="separator-in-value"),
        pytest.param({"properties": {"": "b"}}, "empty name", id="empty-name"),
        pytest.param({"deliver_at_ms": 0}, "deliver_at_ms=0: want milliseconds since 1970", id="no-time"),
        pytest.param({"properties": {"a": ""}}, "property 'a' is empty", id="empty-value"),
        pytest.param({"properties": {"a": 1}}, "property 'a' is int: want text", id="number-value"),
        pytest.param({"properties": {"UNIQ_KEY": "1"}}, "'UNIQ_KEY' is reserved", id="reserved"),
        pytest.param({"properties": {"a": "x" * 32768}}, "at most 32255", id="large-properties"),
        pytest.param({"properties": {"a": "я" * 16200}}, "at most 32255", id="large-in-bytes-only"),
        pytest.param({"properties": {"a": "\ud800"}}, "no Unicode", id="lone-surrogate"),
        pytest.param(
            {"keys": ["k"] * 10700, "tags": "t" * 10700, "sharding_key": "s" * 10700},
            "at most 32255",
            id="many-keys",
        ),
    ],
)


@REFUSED
def test_what_cannot_be_sent_is_refused_by_name(changes, text):
    with pytest.raises(MessageRejectedError, match=text):
        check_message(message(**changes), LIMIT)


@REFUSED
def test_what_cannot_be_sent_is_refused_among_others(changes, text):
    check_message(message(), LIMIT)  # the topic is known from now on

    with pytest.raises(MessageRejectedError, match=text):
        check_messages([message(), message(**changes), message()], LIMIT)


@pytest.mark.parametrize("given", [None, "text", {"topic": "T"}], ids=repr)
def test_what_is_no_message_is_refused(given):
    with pytest.raises(MessageRejectedError, match="want a Message"):
        check_message(given, LIMIT)


def test_a_group_may_be_as_long_as_upstream_allows_and_no_longer():
    check_name("group", "g" * 120, MAX_GROUP_LENGTH)
    with pytest.raises(MessageRejectedError, match="121 characters: at most 120"):
        check_name("group", "g" * 121, MAX_GROUP_LENGTH)


@pytest.mark.parametrize("name", ["%RETRY%group", "T-1_a|b", "t" * MAX_TOPIC_LENGTH])
def test_names_brokers_take_pass(name):
    check_name("topic", name, MAX_TOPIC_LENGTH)


TEXTS = st.sampled_from(["", "a", "b" * 9000, "ü", "a|", "|b", "a||b", "\x01", "a\x02", "\ud800", "KEYS"])
ODD = st.sampled_from(
    [None, 0, b"x", ["a"], ["a", ""], ["a"] * 9000, ("a", 1), {"a": "b"}, {"a": 1}, {"KEYS": "x"}]
)
VALUES = TEXTS | ODD


def outcome(check: Callable[[], object]) -> str:
    try:
        check()
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same
        return f"{type(error).__name__}: {error}"
    return "passes"


@pytest.mark.process
@settings(max_examples=200)
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "topic": VALUES,
                "body": VALUES | st.sampled_from([b"", b"x" * 101, bytearray(2), memoryview(b"abc")]),
                "flag": st.sampled_from([0, 1, 2**31]),
                "tags": VALUES,
                "keys": VALUES,
                "sharding_key": VALUES,
                "properties": st.dictionaries(TEXTS, TEXTS) | ODD,
                "delay_level": st.sampled_from([0, 3, 99]),
                "priority": st.sampled_from([None, 1, -1]),
            },
        ),
        max_size=4,
    )
)
def test_lists_are_judged_as_their_messages_are(changes):
    messages = [Message(**{"topic": "T", "body": b"x"} | change) for change in changes]

    def check_each() -> None:
        for message in messages:
            check_message(message, 100)

    assert outcome(lambda: check_messages(messages, 100)) == outcome(check_each)


def test_in_a_list_something_else_than_a_message_is_refused():
    with pytest.raises(MessageRejectedError, match="want a Message"):
        check_messages([Message("T", b"x"), None], 100)  # type: ignore[list-item]  # the mistake


@pytest.mark.parametrize("count", [1, 3])
def test_a_key_with_a_blank_in_a_list_is_refused_and_a_text_stays(count):
    right = [Message("T", b"x", keys="order 17"), Message("T", b"x", keys=["order-17", "b"])] * count
    wrong = Message("T", b"x", keys=["a", "order 17"])

    check_messages(right, 1000)
    for check in (lambda: check_message(wrong, 1000), lambda: check_messages([*right, wrong], 1000)):
        with pytest.raises(MessageRejectedError, match=r"key 'order 17' has a blank: .* replace the blank"):
            check()


@pytest.mark.parametrize("tags", [" a", "a ", "\ta", "a\n"])
def test_a_tag_with_outer_blanks_is_refused(tags):
    wrong = Message("T", b"x", tags=tags)

    check_message(Message("T", b"x", tags="a b"), 1000)
    for check in (lambda: check_message(wrong, 1000), lambda: check_messages([wrong] * 3, 1000)):
        with pytest.raises(MessageRejectedError, match="begins or ends with a blank: no subscription"):
            check()
