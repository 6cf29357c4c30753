"""The names that users import. Every change here belongs into the changelog."""

import importlib
import inspect
import subprocess
import sys

import pytest

import rmqtools
from rmqtools import aio, sync

PUBLIC = {
    "rmqtools": """
        Admin BrokerData Client ClientConfig ClusterInfo ConsumeConcurrentlyStatus ConsumeContext
        ConsumeFromWhere ConsumeOrderlyStatus HalfMessage LocalTransactionState Message MessageBlock
        MessageExt MessageListener MessageModel MessageQueue Outcome Perm Producer ProducerConfig
        PullConsumer PullConsumerConfig PushConsumer PushConsumerConfig QueueData QueueRange ReplyMessage
        RocketMQError SendAttempt SendResult SendStatus TopicMessageType TopicRouteData TransactionListener
        TransactionProducer TransactionSendResult create_reply errors""",
    "rmqtools.aio": """
        Admin Client MessageListener Producer PullConsumer PushConsumer TransactionListener
        TransactionProducer create_reply""",
    "rmqtools.allocate": """
        AllocateAveragely AllocateAveragelyByCircle AllocateByConfig AllocateByConsistentHash
        AllocateByMachineRoom AllocateByPins AllocateMachineRoomNearby AllocateMessageQueueStrategy
        AllocatePinnedByIp MachineRoomResolver NO_PINS Pins RoomByPrefix STRATEGIES client_address newest
        share strategy_of""",
    "rmqtools.compatibility": "FEATURES Feature feature_rows",
    "rmqtools.compat.client": """
        ConsumeStatus Message MessageModel MessageProperty NullPointerException Producer PushConsumer
        ReceivedMessage SendResult SendStatus TraceModel TransactionMQProducer TransactionStatus""",
    "rmqtools.group": """
        Finding FindingKind GroupMember GroupView MessageRequestMode QueueProgress check_group
        check_pin_copies member_of pin_obstacles silent_member""",
    "rmqtools.plot": "Owners lag_figure shares_figure",
    "rmqtools.once": "Claim KeyStore MemoryStore RedisStore SqlStore deduplicate message_key",
    "rmqtools.otel": "instrument uninstrument",
    "rmqtools.sync": """
        Admin Client MessageListener Producer PullConsumer PushConsumer TransactionListener
        TransactionProducer create_reply""",
    "rmqtools.testing": """
        Drain FakeCluster Fault NAME_SERVER PinnedGroup Reaction RequestCode ResponseCode encode_stored
        stored_message""",
}

ONLY_BLOCKING = {"send_async", "run", "iterate"}  # coroutines and asynchronous iterators need neither


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_pinned(module: str) -> None:
    assert sorted(importlib.import_module(module).__all__) == PUBLIC[module].split()


def test_every_error_is_in_the_tree_that_its_module_draws() -> None:
    drawn = inspect.getdoc(rmqtools.errors) or ""
    classes = [v for v in vars(rmqtools.errors).values() if inspect.isclass(v) and issubclass(v, Exception)]

    assert [c.__name__ for c in classes if c.__name__ not in drawn] == []
    assert all(issubclass(c, rmqtools.RocketMQError) for c in classes)


def methods(owner: type) -> dict[str, list[tuple[str, object]]]:
    public = inspect.getmembers(owner, lambda member: inspect.isfunction(member))
    return {
        name: [(p.name, p.default) for p in inspect.signature(function).parameters.values()]
        for name, function in public
        if not name.startswith("_")
    }


@pytest.mark.parametrize("name", PUBLIC["rmqtools.aio"].split())
def test_both_faces_have_the_same_methods_with_the_same_parameters(name: str) -> None:
    blocking, asynchronous = methods(getattr(sync, name)), methods(getattr(aio, name))

    assert {method: blocking[method] for method in blocking.keys() - ONLY_BLOCKING} == asynchronous


def test_every_public_name_is_that_of_its_home_and_another_is_refused() -> None:
    assert set(rmqtools.__all__) <= set(dir(rmqtools))
    assert rmqtools.Producer is sync.Producer
    assert rmqtools.create_reply is sync.create_reply
    with pytest.raises(AttributeError, match="module 'rmqtools' has no attribute 'Consumer'"):
        rmqtools.Consumer  # noqa: B018
    for name in rmqtools.__all__:
        assert getattr(rmqtools, name) is not None


@pytest.mark.process
def test_importing_rmqtools_imports_none_of_its_rooms() -> None:
    program = "import sys, rmqtools; print([name for name in sys.modules if name.startswith('rmqtools.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout == "[]\n"


@pytest.mark.process
def test_importing_rmqtools_needs_neither_numpy_nor_pyarrow_nor_pyspark_and_starts_nothing() -> None:
    program = """
import sys, threading
for name in ("numpy", "pyarrow", "pyspark"):
    sys.modules[name] = None
import rmqtools, rmqtools.aio, rmqtools.allocate, rmqtools.cluster, rmqtools.cli
assert threading.active_count() == 1, threading.enumerate()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stderr == ""
    assert done.returncode == 0
