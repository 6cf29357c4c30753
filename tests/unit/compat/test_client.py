"""The names and signatures of ``rocketmq.client`` 2.0.0; the interoperability tests run both."""

import inspect

import pytest

from rmqtools.compat import client, exceptions
from rmqtools.errors import RocketMQError

NATIVE = {  # positional parameters and the defaults of the last of them
    "Message": ("topic", ()),
    "Message.set_body": ("body", ()),
    "Message.set_keys": ("keys", ()),
    "Message.set_tags": ("tags", ()),
    "Message.set_property": ("key value", ()),
    "Message.set_delay_time_level": ("delay_time_level", ()),
    "ReceivedMessage.get_property": ("prop", ()),
    "Producer": (
        "group_id orderly timeout compress_level max_message_size",
        (False, None, None, None),
    ),
    "Producer.send_sync": ("msg", ()),
    "Producer.send_oneway": ("msg", ()),
    "Producer.send_orderly_with_sharding_key": ("msg sharding_key", ()),
    "Producer.set_group": ("group_name", ()),
    "Producer.set_name_server_address": ("addr", ()),
    "Producer.set_name_server_domain": ("domain", ()),
    "Producer.set_session_credentials": ("access_key access_secret channel", ("",)),
    "Producer.set_timeout": ("timeout", ()),
    "Producer.set_compress_level": ("level", ()),
    "Producer.set_max_message_size": ("max_size", ()),
    "Producer.start": ("", ()),
    "Producer.shutdown": ("", ()),
    "TransactionMQProducer": (
        "group_id checker_callback user_args timeout compress_level max_message_size",
        (None, None, None, None),
    ),
    "TransactionMQProducer.send_message_in_transaction": ("message local_execute user_args", (None,)),
    "PushConsumer": ("group_id orderly message_model", (False, client.MessageModel.CLUSTERING)),
    "PushConsumer.subscribe": ("topic callback expression", ("*",)),
    "PushConsumer.set_group": ("group_id", ()),
    "PushConsumer.set_message_model": ("model", ()),
    "PushConsumer.set_name_server_address": ("addr", ()),
    "PushConsumer.set_name_server_domain": ("domain", ()),
    "PushConsumer.set_session_credentials": ("access_key access_secret channel", ("",)),
    "PushConsumer.set_thread_count": ("thread_count", ()),
    "PushConsumer.set_message_batch_max_size": ("max_size", ()),
    "PushConsumer.set_instance_name": ("name", ()),
    "PushConsumer.start": ("", ()),
    "PushConsumer.shutdown": ("", ()),
}


@pytest.mark.parametrize("name", NATIVE)
def test_a_call_of_the_native_client_has_the_same_parameters(name: str) -> None:
    owner, _, method = name.partition(".")
    called = getattr(client, owner)
    parameters = inspect.signature(getattr(called, method) if method else called).parameters.values()
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]

    names, defaults = NATIVE[name]
    assert [p.name for p in positional] == names.split()
    assert tuple(p.default for p in positional if p.default is not p.empty) == defaults


def test_all_names_of_the_native_client_are_there() -> None:
    wanted = """SendStatus Message ReceivedMessage Producer PushConsumer TransactionMQProducer
        TransactionStatus ConsumeStatus SendResult MessageModel MessageProperty NullPointerException"""

    assert set(wanted.split()) <= set(client.__all__)


@pytest.mark.parametrize(
    ("enum", "numbers"),
    [
        (client.SendStatus, "OK=0 FLUSH_DISK_TIMEOUT=1 FLUSH_SLAVE_TIMEOUT=2 SLAVE_NOT_AVAILABLE=3"),
        (client.TransactionStatus, "COMMIT=0 ROLLBACK=1 UNKNOWN=2"),
        (client.ConsumeStatus, "CONSUME_SUCCESS=0 RECONSUME_LATER=1"),
        (client.MessageModel, "BROADCASTING=0 CLUSTERING=1"),
        (client.TraceModel, "OPEN=0 CLOSE=1"),
    ],
)
def test_the_enums_have_the_native_numbers(enum, numbers: str) -> None:
    assert " ".join(f"{member.name}={member:d}" for member in enum) == numbers


@pytest.mark.parametrize(
    ("name", "bases"),
    [
        ("NullPointerException", "RocketMQException"),
        ("MallocFailed", "RocketMQException"),
        ("ProducerStartFailed", "ProducerException RocketMQException"),
        ("ProducerSendSyncFailed", "ProducerException RocketMQException"),
        ("ProducerSendOnewayFailed", "ProducerException RocketMQException"),
        ("ProducerSendOrderlyFailed", "ProducerException RocketMQException"),
        ("ProducerSendAsyncFailed", "ProducerException RocketMQException"),
        ("PushConsumerStartFailed", "ConsumerException RocketMQException"),
    ],
)
def test_the_exceptions_have_the_native_bases_and_are_ours_too(name: str, bases: str) -> None:
    found = getattr(exceptions, name)

    assert [base.__name__ for base in found.__mro__[1 : len(bases.split()) + 1]] == bases.split()
    assert issubclass(found, RocketMQError)


def test_a_send_result_is_a_tuple_of_status_id_and_offset() -> None:
    result = client.SendResult(client.SendStatus.OK, "id", 7)

    assert (result, result._fields) == ((0, "id", 7), ("status", "msg_id", "offset"))


def test_properties_have_the_names_of_stored_messages() -> None:
    assert client.MessageProperty.REAL_QUEUE_ID.value == "REAL_QID"
    assert len(client.MessageProperty) == 22
