"""The names that users import. Every change here belongs into the changelog."""

import ast
import importlib
import inspect
import pickle
import pydoc
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest

import rmqtools
from rmqtools import aio, sync
from tools.reference_pages import client_classes

PUBLIC = {
    "rmqtools": """
        Admin BrokerData Client ClientConfig ClusterInfo ConsumeConcurrentlyStatus ConsumeContext
        ConsumeFromWhere ConsumeOrderlyStatus Decision DecisionLog ExactAppender HalfMessage
        LocalTransactionState Message MessageBlock MessageExt MessageListener MessageModel
        MessageQueue Mirror MirrorConfig MovedOffset Outcome Perm Producer ProducerConfig PullConsumer
        PullConsumerConfig PushConsumer PushConsumerConfig QueueData QueueMirror QueueRange
        ReplyMessage RocketMQError SendAttempt SendResult SendStatus SimpleConsumer
        SimpleConsumerConfig StagedCommit StagedStatus StagedWrites TopicMessageType TopicRouteData
        TransactionListener TransactionProducer TransactionSendResult create_reply errors""",
    "rmqtools.aio": """
        Admin Client DecisionLog ExactAppender MessageListener Mirror Producer PullConsumer
        PushConsumer SimpleConsumer StagedWrites TransactionListener TransactionProducer create_reply""",
    "rmqtools.allocate": """
        AllocateAveragely AllocateAveragelyByCircle AllocateByConfig AllocateByConsistentHash
        AllocateByMachineRoom AllocateByPins AllocateMachineRoomNearby AllocateMessageQueueStrategy
        AllocatePinnedByIp MachineRoomResolver NO_PINS Pins RoomByPrefix STRATEGIES client_address newest
        share strategy_of""",
    "rmqtools.broker": """
        BrokerBacklog BrokerState ClusterCheck GroupBacklog NameServerState awaited broker_note check_broker
        check_gone incoming left_behind""",
    "rmqtools.compatibility": "FEATURES Feature feature_rows",
    "rmqtools.compiled": "state twins why_pure",
    "rmqtools.compat.client": """
        ConsumeStatus Message MessageModel MessageProperty NullPointerException Producer PushConsumer
        ReceivedMessage SendResult SendStatus TraceModel TransactionMQProducer TransactionStatus""",
    "rmqtools.group": """
        CustomizedRetryPolicy DeadLetters ExponentialRetryPolicy Finding FindingKind GroupCheck GroupLimits
        GroupMember GroupRetryPolicy GroupSettings GroupView MessageRequestMode ProxiedMember QueueProgress
        Severity SubscriptionGroupConfig UnreadableQueues WaitingQueue check_group check_pin_copies member_of
        pin_obstacles severity severity_of silent_member worst_first""",
    "rmqtools.plot": "Owners lag_figure shares_figure story_figure",
    "rmqtools.once": "Claim KeyStore MemoryStore RedisStore SqlStore deduplicate message_key",
    "rmqtools.otel": "instrument uninstrument",
    "rmqtools.sync": """
        Admin Client DecisionLog ExactAppender MessageListener Mirror Producer PullConsumer
        PushConsumer SimpleConsumer StagedWrites TransactionListener TransactionProducer create_reply""",
    "rmqtools.testing": """
        Drain FakeCluster Fault NAME_SERVER PinnedGroup Reaction RequestCode ResponseCode encode_stored
        stored_message""",
}

CLASSES = (
    "Admin",
    "Client",
    "DecisionLog",
    "ExactAppender",
    "Mirror",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "SimpleConsumer",
    "StagedWrites",
    "TransactionProducer",
)
CONFIGS = [
    ("rmqtools.config.client", "ClientConfig", {}),
    ("rmqtools.config.producer", "ProducerConfig", {}),
    ("rmqtools.config.consumer", "PullConsumerConfig", {"group": "g"}),
    ("rmqtools.config.consumer", "PushConsumerConfig", {"group": "g"}),
    ("rmqtools.config.simple_consumer", "SimpleConsumerConfig", {"group": "g"}),
]
SHOWN = {  # names that the documentation of 0.2.0 imports or describes, beside those above
    "rmqtools.arrow": "read_range",
    "rmqtools.arrow.read_range": "read_range read_ranges",
    "rmqtools.arrow.schema": "message_schema select_columns",
    "rmqtools.arrow.send_batches": "SendReport send_batches",
    "rmqtools.cluster": "LocalCluster",
    "rmqtools.compat.exceptions": "ProducerSendSyncFailed",
    "rmqtools.config.client": "ClientConfig",
    "rmqtools.config.consumer": "ConsumerConfig PullConsumerConfig PushConsumerConfig",
    "rmqtools.config.producer": "ProducerConfig",
    "rmqtools.errors": "MessageRejectedError SendError UnknownOutcomeError",
    "rmqtools.log": "configure event_values",
    "rmqtools.model.consume": "ConsumeConcurrentlyStatus ConsumeContext ConsumeOrderlyStatus",
    "rmqtools.model.message": "Message MessageExt",
    "rmqtools.model.queue": "MessageQueue QueueRange",
    "rmqtools.model.result": "Outcome SendAttempt SendResult SendStatus",
    "rmqtools.model.transaction": "LocalTransactionState TransactionSendResult",
    "rmqtools.once.deduplicate": "Deduplicated DeduplicatedCoroutine deduplicate",
    "rmqtools.once.key_store": "Claim KeyStore",
    "rmqtools.once.memory_store": "MemoryStore",
    "rmqtools.once.message_key": "message_key",
    "rmqtools.once.redis_store": "RedisStore",
    "rmqtools.once.sql_store": "SqlStore",
    "rmqtools.otel.instrument": "instrument uninstrument",
    "rmqtools.select": "SelectMessageQueueByHash",
}


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_pinned(module: str) -> None:
    found = sorted(importlib.import_module(module).__all__)
    assert found == PUBLIC[module].split(), (
        f"names of {module} have changed: correct PUBLIC in this file; .venv/bin/python -m tools.surface"
    )


def test_every_error_is_in_the_tree_that_its_module_draws() -> None:
    drawn = inspect.getdoc(rmqtools.errors) or ""
    classes = [v for v in vars(rmqtools.errors).values() if inspect.isclass(v) and issubclass(v, Exception)]

    undrawn = [c.__name__ for c in classes if c.__name__ not in drawn]
    assert not undrawn, f"draw {undrawn} in the docstring of rmqtools/errors.py"
    assert all(issubclass(c, rmqtools.RocketMQError) for c in classes)


@pytest.mark.parametrize("module", SHOWN)
def test_names_that_the_documentation_of_0_2_0_shows_are_kept(module: str) -> None:
    found = importlib.import_module(module)

    assert [name for name in SHOWN[module].split() if not hasattr(found, name)] == []


@pytest.mark.parametrize("module", ["rmqtools", "rmqtools.aio"])
def test_a_client_class_names_the_module_that_documents_it(module: str) -> None:
    classes = [*CLASSES, "TransactionListener"]
    home = importlib.import_module(module)

    assert {getattr(home, name).__module__ for name in classes} == {module}
    assert sorted(client_classes()) == list(CLASSES)


def public_methods(owner: type) -> dict[str, Any]:
    found = inspect.getmembers(owner, inspect.isfunction)
    return {name: function for name, function in found if not name.startswith("_")}


@pytest.mark.parametrize("name", CLASSES)
def test_a_blocking_class_has_every_method_of_the_asynchronous_one(name: str) -> None:
    blocking, asynchronous = (public_methods(getattr(face, name)) for face in (rmqtools, aio))

    lacking = asynchronous.keys() - blocking.keys()
    assert not lacking, f"{name} lacks {sorted(lacking)}: run .venv/bin/python -m tools.blocking_classes"


@pytest.mark.parametrize("face", [rmqtools, aio], ids=["blocking", "asynchronous"])
@pytest.mark.parametrize("name", CLASSES)
def test_every_method_has_its_own_documentation_and_a_signature_that_resolves(face: Any, name: str) -> None:
    for function in public_methods(getattr(face, name)).values():
        assert not (inspect.getdoc(function) or "See").startswith("See"), function
        assert set(typing.get_type_hints(function)) - {"return"} <= set(
            inspect.signature(function).parameters
        )


def test_the_signature_of_a_blocking_method_is_that_of_the_asynchronous_one() -> None:
    blocking, asynchronous = (inspect.signature(face.Producer.send) for face in (rmqtools, aio))

    assert blocking == asynchronous
    assert [*blocking.parameters] == ["self", "message", "queue", "selector", "arg", "timeout"]
    assert [*inspect.signature(rmqtools.Admin).parameters] == ["config", "partial"]


@pytest.mark.parametrize("face", [rmqtools, aio], ids=["blocking", "asynchronous"])
def test_help_explains_a_send(face: Any) -> None:
    text = pydoc.render_doc(face.Producer.send, renderer=pydoc.plaintext)  # type: ignore[attr-defined]  # not in typeshed

    assert "UnknownOutcomeError: no answer came, so the message may or may not be stored." in text
    assert ("A selector runs on the loop thread" in text) == (face is rmqtools)


@pytest.mark.parametrize(("module", "name", "settings"), CONFIGS)
def test_a_pickled_config_names_the_same_class_as_before(module: str, name: str, settings: Any) -> None:
    config = getattr(rmqtools, name)(name_server="127.0.0.1:1", **settings)
    data = pickle.dumps(config)

    assert pickle.loads(data) == config
    assert type(config).__module__ == module


def test_every_public_name_is_that_of_its_home_and_another_is_refused() -> None:
    assert set(rmqtools.__all__) <= set(dir(rmqtools))
    assert rmqtools.Producer is sync.Producer
    assert rmqtools.create_reply is sync.create_reply
    with pytest.raises(AttributeError, match="module 'rmqtools' has no attribute 'Consumer'"):
        rmqtools.Consumer  # type: ignore[attr-defined]  # noqa: B018
    for name in rmqtools.__all__:
        assert getattr(rmqtools, name) is not None


def run_program(program: str) -> str:
    """Return what a program prints, in an interpreter of its own; without warnings and errors."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


@pytest.mark.process
def test_importing_rmqtools_imports_none_of_its_rooms() -> None:
    program = "import sys, rmqtools; print([name for name in sys.modules if name.startswith('rmqtools.')])"

    assert run_program(program) == "['rmqtools.lazy_names', 'rmqtools.version']\n"


@pytest.mark.process
def test_a_module_that_is_a_public_name_is_there_without_an_import_of_its_own() -> None:
    program = "import rmqtools; print(rmqtools.errors.SendError.__module__)"

    assert run_program(program) == "rmqtools.errors\n"


@pytest.mark.parametrize(
    "package", ["rmqtools", "rmqtools.aio", "rmqtools.arrow", "rmqtools.config", "rmqtools.sync"]
)
def test_names_imported_on_use_are_those_that_type_checkers_see(package: str) -> None:
    module = importlib.import_module(package)
    source = ast.parse(inspect.getsource(module))
    (seen,) = (node for node in source.body if isinstance(node, ast.If))
    imports = [node for node in seen.body if isinstance(node, ast.ImportFrom)]

    names = {alias.name for node in imports for alias in node.names}
    files = {path.stem for path in Path(str(module.__file__)).parent.iterdir()}

    assert names <= {*module.__all__} & {*dir(module)}
    assert names & files <= {"errors"}, "importing the file would replace the name"
    for node in imports:
        for alias in node.names:
            home = importlib.import_module(node.module or "")
            assert getattr(module, alias.name) is getattr(home, alias.name)


@pytest.mark.process
def test_importing_rmqtools_needs_neither_numpy_nor_pyarrow_nor_pyspark_and_starts_nothing() -> None:
    program = """
import sys, threading
for name in ("numpy", "pyarrow", "pyspark"):
    sys.modules[name] = None
import rmqtools, rmqtools.aio, rmqtools.allocate, rmqtools.cluster, rmqtools.cli
assert threading.active_count() == 1, threading.enumerate()
"""
    run_program(program)


@pytest.mark.process
def test_a_push_consumer_imports_nothing_that_few_of_them_use() -> None:
    few_use = {"tenacity", "urllib.request", "rmqtools.name_server_list", "rmqtools.engine.producer"}
    program = f"import sys; from rmqtools import PushConsumer; print({few_use} & sys.modules.keys())"

    assert run_program(program) == "set()\n"
