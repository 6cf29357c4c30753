"""A message whose body cannot be read: everything else of it works."""

import copy
import pickle
from typing import Any

import pytest

from rmqtools.errors import CorruptBodyError, ProtocolError
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.messages.corrupt_message import CorruptMessage, corrupt_message, raw_message
from rmqtools.protocol.messages.stored import decode_message, encode_message

RAW = b"as stored"


def message(**values: object) -> MessageExt:
    fields: Any = {
        "topic": "T",
        "queue_id": 2,
        "queue_offset": 9,
        "commit_log_offset": 900,
        "body": RAW,
        "properties": {"TAGS": "red", "UNIQ_KEY": "ID"},
        "flag": 0,
        "sys_flag": 0,
        "born_timestamp_ms": 1,
        "born_host": "127.0.0.1:1",
        "store_timestamp_ms": 2,
        "store_host": "127.0.0.1:2",
        "broker_name": "broker-a",
    } | values
    return MessageExt(**fields)


def corrupt(**values: object) -> CorruptMessage:
    """Fresh from an answer: nothing of it is decoded yet."""
    stored = decode_message(encode_message(message(**values)), broker_name="broker-a")
    return corrupt_message(stored, "it is torn")


def test_reading_the_body_raises_an_error_that_tells_all():
    with pytest.raises(CorruptBodyError) as caught:
        _ = corrupt().body

    error = caught.value
    assert (error.queue, error.offset) == (MessageQueue("T", "broker-a", 2), 9)
    assert (error.why, error.raw) == ("it is torn", RAW)
    assert isinstance(error, ProtocolError)
    assert "queue offset 9 of" in str(error)
    assert "it is torn" in str(error)
    assert "in `raw`" in str(error)


def test_an_error_does_not_show_the_body_and_travels_between_processes():
    error = corrupt().body_error

    again = pickle.loads(pickle.dumps(error))

    assert "as stored" not in repr(error)
    assert (again.queue, again.offset, again.why, again.raw) == (error.queue, 9, "it is torn", RAW)


def test_a_good_message_has_no_body_error():
    assert message().body_error is None


def test_everything_but_the_body_can_be_read():
    broken = corrupt()

    assert (broken.msg_id, broken.tags, broken.keys) == ("ID", "red", None)
    assert (broken.queue_offset, broken.commit_log_offset, broken.store_host) == (9, 900, "127.0.0.1:2")
    assert isinstance(broken, MessageExt)


def test_a_representation_tells_what_is_wrong_and_does_not_show_the_body():
    text = repr(corrupt())

    assert "queue_offset=9" in text
    assert "body=<9 bytes that cannot be read: it is torn>" in text
    assert "as stored" not in text


def test_equal_messages_are_equal_and_others_are_not():
    assert corrupt() == corrupt()
    assert corrupt() != corrupt(queue_offset=10)
    assert corrupt() != corrupt_message(message(body=b"other"), "it is torn")
    assert corrupt() != message()
    assert message() != corrupt()


@pytest.mark.parametrize(
    "copied",
    [lambda one: pickle.loads(pickle.dumps(one)), copy.copy, copy.deepcopy],
    ids=["pickle", "copy", "deepcopy"],
)
def test_a_copy_is_equal_and_as_corrupt(copied):
    again = copied(corrupt())

    assert again == corrupt()
    with pytest.raises(CorruptBodyError):
        _ = again.body


def test_another_topic_leaves_it_corrupt():
    other = corrupt().with_topic("U")

    assert (other.topic, other.tags) == ("U", "red")
    assert other.body_error is not None
    assert str(other.body_error.queue) == str(MessageQueue("U", "broker-a", 2))


def test_other_values_leave_it_corrupt_but_another_body_heals_it():
    again = corrupt().with_values(reconsume_times=1)
    healed = again.with_values(body=b"good")

    assert (again.reconsume_times, again.body_error is None) == (1, False)
    assert (healed.body, healed.body_error, healed.reconsume_times) == (b"good", None, 1)


def test_the_raw_message_has_the_body_as_stored():
    assert raw_message(corrupt()).body == RAW
    assert raw_message(corrupt()).tags == "red"
    assert raw_message(good := message()) is good
