import pytest

from rmqtools import TopicMessageType
from rmqtools.errors import ConfigError
from rmqtools.model.codes import ResponseCode
from rmqtools.policy.endpoint.topic_types import refused_type_hint, topic_attributes


def test_attributes_are_written_as_changes_and_none_removes():
    written = topic_attributes(TopicMessageType.FIFO, {"cleanup.policy": "COMPACTION", "reserve.time": None})

    assert written == "+cleanup.policy=COMPACTION,-reserve.time,+message.type=FIFO"


def test_a_type_may_be_given_as_text():
    assert topic_attributes("DELAY", {}) == "+message.type=DELAY"


def test_without_changes_nothing_is_written():
    assert topic_attributes(None, {}) is None


@pytest.mark.parametrize(
    ("message_type", "attributes", "text"),
    [
        pytest.param("SLOW", {}, "message_type='SLOW': want one of UNSPECIFIED, NORMAL", id="unknown-type"),
        pytest.param("FIFO", {"message.type": "DELAY"}, "give one", id="twice"),
        pytest.param(None, {"a,b": "c"}, "'a,b'='c' of a topic: want texts without", id="comma"),
        pytest.param(None, {"a": "b=c"}, "'a'='b=c' of a topic", id="equals"),
        pytest.param(None, {"": "b"}, "''='b'", id="empty-name"),
    ],
)
def test_what_brokers_could_not_read_is_refused(message_type, attributes, text):
    with pytest.raises(ConfigError, match=text):
        topic_attributes(message_type, attributes)


def test_a_refused_type_is_explained_with_the_topics_type_and_the_remedy():
    remark = "TopicMessageType validate failed, the expected type is NORMAL, but actual type is DELAY"

    hint = refused_type_hint(ResponseCode.MESSAGE_ILLEGAL, remark, "orders")

    assert hint == (
        "topic 'orders' has the message type NORMAL, and a message with a delay is DELAY: send it to a topic "
        "made with Admin.create_topic(message_type='DELAY'); 'MIXED' takes all types, where brokers have "
        "enableMixedMessageType=true"
    )


@pytest.mark.parametrize(
    ("code", "remark"),
    [(ResponseCode.MESSAGE_ILLEGAL, "too large"), (ResponseCode.SYSTEM_ERROR, None)],
)
def test_other_refusals_are_left_alone(code, remark):
    assert refused_type_hint(code, remark, "orders") == ""
