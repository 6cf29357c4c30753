"""A stored message decodes only the fields that are used; the result is the same."""

import copy
import inspect
import pickle
import typing
from dataclasses import fields, replace

import pytest

from rmqtools import HalfMessage, ReplyMessage
from rmqtools.model.message import SLOTS, Message, MessageExt, undecoded_message
from rmqtools.protocol.messages.stored import decode_message, encode_message

MADE = MessageExt(
    topic="T",
    queue_id=1,
    queue_offset=5,
    commit_log_offset=99,
    body=b"hello",
    properties={"KEYS": "k", "TAGS": "t"},
    flag=7,
    sys_flag=0,
    born_timestamp_ms=1,
    born_host="10.0.0.1:10911",
    store_timestamp_ms=2,
    store_host="10.0.0.2:10911",
    reconsume_times=3,
    prepared_transaction_offset=4,
)
STORED = encode_message(MADE)
SAME = replace(
    MADE,
    body_crc=decode_message(STORED).body_crc,
    store_size_bytes=len(STORED),
    offset_msg_id="0A00000200002A9F0000000000000063",
)


@pytest.mark.parametrize("name", [field.name for field in fields(MessageExt)])
def test_any_field_may_be_asked_for_first(name):
    assert getattr(decode_message(STORED), name) == getattr(SAME, name)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(lambda message: message, id="itself"),
        pytest.param(lambda message: pickle.loads(pickle.dumps(message)), id="pickled"),
        pytest.param(copy.copy, id="copied"),
        pytest.param(copy.deepcopy, id="copied-deeply"),
        pytest.param(replace, id="replaced"),
    ],
)
def test_a_message_not_decoded_yet_equals_one_made_of_the_same_values(seen):
    assert seen(decode_message(STORED)) == SAME
    assert repr(seen(decode_message(STORED))) == repr(SAME)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (Message("T", b"secret"), "Message(topic='T', body=<6 bytes>)"),
        (
            Message("T", memoryview(b"secret"), keys=["k"], properties={"a": "b"}),  # type: ignore[arg-type]
            "Message(topic='T', body=<6 bytes>, keys=['k'], properties={'a': 'b'})",
        ),
        (Message("T", "secret"), "Message(topic='T', body=<a str>)"),  # type: ignore[arg-type]
        (
            HalfMessage("T", b"secret", transaction_id="7F"),
            "HalfMessage(topic='T', body=<6 bytes>, transaction_id='7F')",
        ),
        (
            ReplyMessage("T", b"secret", correlation_id="c", reply_to_client="r"),
            "ReplyMessage(topic='T', body=<6 bytes>, correlation_id='c', reply_to_client='r')",
        ),
    ],
    ids=["bytes", "view", "text", "half", "reply"],
)
def test_a_representation_shows_the_size_of_the_body_and_what_is_not_as_by_default(message, shown):
    assert repr(message) == shown


def test_a_representation_of_a_stored_message_shows_no_body():
    assert "topic='T', queue_id=1, queue_offset=5, " in repr(decode_message(STORED))
    assert "body=<5 bytes>" in repr(decode_message(STORED))
    assert "hello" not in repr(decode_message(STORED))


def test_what_is_decoded_is_decoded_once():
    asked = []

    def fill(message: MessageExt, head: bytes, properties: bytes) -> dict[str, str]:
        asked.append((head, properties))
        SLOTS["properties"](message, {"TAGS": "t", "__SHARDINGKEY": "s"})
        return {"TAGS": "t"}

    message = undecoded_message("T", 1, b"x", "b", {"properties": fill}, b"head", b"properties")

    assert (message.body, message.queue_offset, asked) == (b"x", 1, [])
    assert (message.tags, message.keys, message.sharding_key) == ("t", None, "s")
    assert asked == [(b"head", b"properties")]


@pytest.mark.parametrize("message", [MADE, decode_message(STORED)], ids=["made", "stored"])
def test_another_topic_changes_nothing_else(message):
    assert message.with_topic("U") == replace(message, topic="U")


def test_another_topic_decodes_nothing():
    message = undecoded_message("T", 1, b"x", "b", {}, b"head", b"properties")  # nothing that could decode

    assert message.with_topic("U").topic == "U"


@pytest.mark.parametrize("message", [MADE, decode_message(STORED)], ids=["made", "stored"])
def test_a_name_that_is_no_field_is_an_attribute_error(message):
    with pytest.raises(AttributeError, match="'MessageExt' object has no attribute 'colour'"):
        _ = message.colour


BOUND_INIT = Message("t", b"x").__init__  # type: ignore[misc]  # what inspection tools do too


@pytest.mark.parametrize("made", [Message, Message.__init__, BOUND_INIT])
def test_the_signature_of_a_message_has_its_fields_and_their_defaults(made):
    parameters = inspect.signature(made).parameters

    assert [name for name in parameters if name != "self"] == [one.name for one in fields(Message)]
    assert (parameters["tags"].default, parameters["flag"].default) == (None, 0)


@pytest.mark.parametrize("init", [Message.__init__, BOUND_INIT])
def test_the_type_hints_of_making_a_message_are_those_of_its_fields(init):
    assert typing.get_type_hints(init) == {**typing.get_type_hints(Message), "return": type(None)}


def test_a_subclass_of_message_is_made_with_its_own_init_or_the_one_it_inherits():
    class Same(Message):
        __slots__ = ()

    class Named(Message):
        __slots__ = ()

        def __init__(self, name: str) -> None:
            super().__init__("t", name.encode(), keys=[name])

    assert (Same("t", b"x", "tag").body, Same("t", body=b"x").tags) == (b"x", None)
    assert (Named("n").body, Named("n").keys, Named("n").flag) == (b"n", ["n"], 0)
    assert [*inspect.signature(Named).parameters] == ["name"]
