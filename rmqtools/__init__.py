"""Client toolkit for Apache RocketMQ: the blocking face, the values and the errors.

    from rmqtools import Message, Producer, ProducerConfig

    with Producer(ProducerConfig(name_server="127.0.0.1:9876", group="orders")) as producer:
        result = producer.send(Message("topic", b"body", tags="new", keys=["order-1"]))

:mod:`rmqtools.aio` has the same classes for asyncio, :mod:`rmqtools.arrow` reads and writes Arrow batches,
:mod:`rmqtools.cluster` runs a real cluster on this machine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rmqtools.version import __version__ as __version__

if TYPE_CHECKING:
    from rmqtools import errors
    from rmqtools.config import ClientConfig, ProducerConfig
    from rmqtools.config.consumer import PullConsumerConfig, PushConsumerConfig
    from rmqtools.config.mirror import MirrorConfig
    from rmqtools.config.simple_consumer import SimpleConsumerConfig
    from rmqtools.errors import RocketMQError
    from rmqtools.model.block import MessageBlock
    from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
    from rmqtools.model.decision import Decision
    from rmqtools.model.group import ConsumeFromWhere, MessageModel
    from rmqtools.model.message import Message, MessageExt
    from rmqtools.model.mirror import MovedOffset, QueueMirror
    from rmqtools.model.queue import MessageQueue, QueueRange
    from rmqtools.model.reply import ReplyMessage
    from rmqtools.model.result import Outcome, SendAttempt, SendResult, SendStatus
    from rmqtools.model.route import BrokerData, ClusterInfo, Perm, QueueData, TopicRouteData
    from rmqtools.model.staged import StagedCommit, StagedStatus
    from rmqtools.model.topic_type import TopicMessageType
    from rmqtools.model.transaction import HalfMessage, LocalTransactionState, TransactionSendResult
    from rmqtools.sync import (
        Admin,
        Client,
        DecisionLog,
        ExactAppender,
        MessageListener,
        Mirror,
        Producer,
        PullConsumer,
        PushConsumer,
        SimpleConsumer,
        StagedWrites,
        TransactionListener,
        TransactionProducer,
        create_reply,
    )

__all__ = [
    "Admin",
    "BrokerData",
    "Client",
    "ClientConfig",
    "ClusterInfo",
    "ConsumeConcurrentlyStatus",
    "ConsumeContext",
    "ConsumeFromWhere",
    "ConsumeOrderlyStatus",
    "Decision",
    "DecisionLog",
    "ExactAppender",
    "HalfMessage",
    "LocalTransactionState",
    "Message",
    "MessageBlock",
    "MessageExt",
    "MessageListener",
    "MessageModel",
    "MessageQueue",
    "Mirror",
    "MirrorConfig",
    "MovedOffset",
    "Outcome",
    "Perm",
    "Producer",
    "ProducerConfig",
    "PullConsumer",
    "PullConsumerConfig",
    "PushConsumer",
    "PushConsumerConfig",
    "QueueData",
    "QueueMirror",
    "QueueRange",
    "ReplyMessage",
    "RocketMQError",
    "SendAttempt",
    "SendResult",
    "SendStatus",
    "SimpleConsumer",
    "SimpleConsumerConfig",
    "StagedCommit",
    "StagedStatus",
    "StagedWrites",
    "TopicMessageType",
    "TopicRouteData",
    "TransactionListener",
    "TransactionProducer",
    "TransactionSendResult",
    "create_reply",
    "errors",
]

# Where the names are. Each is imported when it is first used: all together take a third of a second.
_HOMES = {
    "rmqtools.config": "ClientConfig ProducerConfig",
    "rmqtools.config.consumer": "PullConsumerConfig PushConsumerConfig",
    "rmqtools.config.mirror": "MirrorConfig",
    "rmqtools.config.simple_consumer": "SimpleConsumerConfig",
    "rmqtools.errors": "RocketMQError",
    "rmqtools.model.block": "MessageBlock",
    "rmqtools.model.consume": "ConsumeConcurrentlyStatus ConsumeContext ConsumeOrderlyStatus",
    "rmqtools.model.decision": "Decision",
    "rmqtools.model.group": "ConsumeFromWhere MessageModel",
    "rmqtools.model.message": "Message MessageExt",
    "rmqtools.model.mirror": "MovedOffset QueueMirror",
    "rmqtools.model.queue": "MessageQueue QueueRange",
    "rmqtools.model.reply": "ReplyMessage",
    "rmqtools.model.result": "Outcome SendAttempt SendResult SendStatus",
    "rmqtools.model.route": "BrokerData ClusterInfo Perm QueueData TopicRouteData",
    "rmqtools.model.staged": "StagedCommit StagedStatus",
    "rmqtools.model.topic_type": "TopicMessageType",
    "rmqtools.model.transaction": "HalfMessage LocalTransactionState TransactionSendResult",
    "rmqtools.policy.reply": "create_reply",
    "rmqtools.sync": "Admin Client DecisionLog ExactAppender MessageListener Mirror Producer PullConsumer "
    "PushConsumer SimpleConsumer StagedWrites TransactionListener TransactionProducer",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a public name."""
    if name == "errors":
        return import_module("rmqtools.errors")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rmqtools' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
