"""Messages of the moved API: what is given, what is sent, what callbacks read."""

import pytest

import rmqtools
from rmqtools.compat.client import Message, MessageProperty, NullPointerException, ReceivedMessage
from rmqtools.compat.exceptions import RocketMQException
from rmqtools.compat.message import plain_message
from rmqtools.testing import stored_message


def filled() -> Message:
    message = Message("orders")
    message.set_body("zażółć")
    message.set_tags("new")
    message.set_keys(b"k1 k2")
    message.set_property("имя", "значение")
    message.set_delay_time_level(3)
    return message


def test_text_is_sent_as_utf_8_and_every_part_in_its_place() -> None:
    assert plain_message(filled(), "key") == rmqtools.Message(
        "orders",
        "zażółć".encode(),
        tags="new",
        keys="k1 k2",
        properties={"имя": "значение"},
        sharding_key="key",
        delay_level=3,
    )


@pytest.mark.parametrize("body", [b"a\x00b\xff", bytearray(b"a\x00b\xff"), memoryview(b"a\x00b\xff")])
def test_binary_bodies_are_sent_whole(body: bytes | bytearray | memoryview) -> None:
    message = Message("orders")
    message.set_body(body)

    assert plain_message(message).body == b"a\x00b\xff"


def test_system_properties_may_be_set_by_name_and_empty_values_are_left_out() -> None:
    message = filled()
    message.set_property(MessageProperty.KEYS, "k3")
    message.set_property("TAGS", "")
    message.set_property("имя", b"")
    sent = plain_message(message)

    assert (sent.keys, sent.tags, sent.properties) == ("k3", None, {})


@pytest.mark.parametrize("method", ["set_body", "set_tags", "set_keys"])
def test_none_is_a_null_pointer_and_another_type_an_error(method: str) -> None:
    with pytest.raises(NullPointerException, match="is None: give text or bytes"):
        getattr(Message("orders"), method)(None)
    with pytest.raises(TypeError, match="7 is int: want text or bytes"):
        getattr(Message("orders"), method)(7)


def test_a_property_without_value_is_a_null_pointer_and_one_that_is_no_text_is_refused() -> None:
    with pytest.raises(NullPointerException, match="property value is None"):
        Message("orders").set_property("name", None)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(RocketMQException, match=r"property value b'\\xff' is not UTF-8"):
        Message("orders").set_property("name", b"\xff")


def test_sending_something_else_is_refused() -> None:
    with pytest.raises(NullPointerException, match="make a Message"):
        plain_message(None)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match=r"'body' is str: want a rmqtools\.compat\.client\.Message"):
        plain_message("body")  # type: ignore[arg-type]  # the mistake


def received() -> ReceivedMessage:
    properties = {"TAGS": "new", "KEYS": "k1 k2", "UNIQ_KEY": "id-1", "DELAY": "3", "имя": "значение"}
    return ReceivedMessage(
        stored_message(
            "orders",
            body=b"a\x00b",
            properties=properties,
            queue_id=1,
            queue_offset=7,
            commit_log_offset=99,
            born_timestamp_ms=1_700_000_000_001,
            store_timestamp_ms=1_700_000_000_002,
            reconsume_times=2,
            prepared_transaction_offset=5,
            store_size_bytes=200,
        )
    )


def test_a_received_message_has_bytes_for_tags_keys_body_and_properties_and_text_for_topic_and_id() -> None:
    message = received()

    assert (message.topic, message.id) == ("orders", "id-1")
    assert (message.tags, message.keys, message.body) == (b"new", b"k1 k2", b"a\x00b")
    assert message["имя"] == message.get_property("имя".encode()) == "значение".encode()
    assert message[MessageProperty.KEYS] == b"k1 k2"
    assert message["none"] == b""


def test_a_received_message_has_milliseconds_and_numbers() -> None:
    message = received()

    assert (message.born_timestamp, message.store_timestamp) == (1_700_000_000_001, 1_700_000_000_002)
    assert (message.queue_id, message.queue_offset, message.commit_log_offset) == (1, 7, 99)
    assert (message.reconsume_times, message.delay_time_level) == (2, 3)
    assert (message.prepared_transaction_offset, message.store_size) == (5, 200)


def test_a_received_message_shows_itself_as_the_native_one() -> None:
    message = received()

    assert (str(message), bytes(message)) == ("a\x00b", b"a\x00b")
    assert repr(message) == "<ReceivedMessage topic='orders' id='id-1' body=b'a\\x00b'>"


def test_the_message_of_a_local_transaction_reads_alike() -> None:
    half = rmqtools.HalfMessage(
        "orders", b"body", tags="new", keys=["k1", "k2"], properties={"a": "1"}, transaction_id="id-2"
    )
    message = ReceivedMessage(half)

    assert (message.id, message.tags, message.keys, message["a"]) == ("id-2", b"new", b"k1 k2", b"1")
    assert (message.queue_offset, message.delay_time_level) == (0, 0)
