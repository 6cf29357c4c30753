"""Client toolkit for Apache RocketMQ: the blocking face, the values and the errors.

    from rmqtools import Message, Producer, ProducerConfig

    with Producer(ProducerConfig(name_server="127.0.0.1:9876", group="orders")) as producer:
        result = producer.send(Message("topic", b"body", tags="new", keys=["order-1"]))

:mod:`rmqtools.aio` has the same classes for asyncio, :mod:`rmqtools.arrow` reads and writes Arrow batches,
:mod:`rmqtools.cluster` runs a real cluster on this machine.
"""

from typing import TYPE_CHECKING

from rmqtools.lazy_names import lazy_names
from rmqtools.version import __version__ as __version__

if TYPE_CHECKING:
    from rmqtools import errors
    from rmqtools.config.client import ClientConfig
    from rmqtools.config.consumer import PullConsumerConfig, PushConsumerConfig
    from rmqtools.config.mirror import MirrorConfig
    from rmqtools.config.producer import ProducerConfig
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
    from rmqtools.policy.reply import create_reply
    from rmqtools.sync.admin import Admin
    from rmqtools.sync.client import Client
    from rmqtools.sync.decision_log import DecisionLog
    from rmqtools.sync.exact_appender import ExactAppender
    from rmqtools.sync.handwritten.push_consumer import MessageListener
    from rmqtools.sync.handwritten.transaction_producer import TransactionListener
    from rmqtools.sync.mirror import Mirror
    from rmqtools.sync.producer import Producer
    from rmqtools.sync.pull_consumer import PullConsumer
    from rmqtools.sync.push_consumer import PushConsumer
    from rmqtools.sync.simple_consumer import SimpleConsumer
    from rmqtools.sync.staged_writes import StagedWrites
    from rmqtools.sync.transaction_producer import TransactionProducer
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "rmqtools.config.client": "ClientConfig",
            "rmqtools.config.consumer": "PullConsumerConfig PushConsumerConfig",
            "rmqtools.config.mirror": "MirrorConfig",
            "rmqtools.config.producer": "ProducerConfig",
            "rmqtools.config.simple_consumer": "SimpleConsumerConfig",
            "rmqtools.errors": "RocketMQError errors",
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
            "rmqtools.sync.admin": "Admin",
            "rmqtools.sync.client": "Client",
            "rmqtools.sync.decision_log": "DecisionLog",
            "rmqtools.sync.exact_appender": "ExactAppender",
            "rmqtools.sync.handwritten.push_consumer": "MessageListener",
            "rmqtools.sync.handwritten.transaction_producer": "TransactionListener",
            "rmqtools.sync.mirror": "Mirror",
            "rmqtools.sync.producer": "Producer",
            "rmqtools.sync.pull_consumer": "PullConsumer",
            "rmqtools.sync.push_consumer": "PushConsumer",
            "rmqtools.sync.simple_consumer": "SimpleConsumer",
            "rmqtools.sync.staged_writes": "StagedWrites",
            "rmqtools.sync.transaction_producer": "TransactionProducer",
        },
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
