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
            "rmqtools.sync": "Admin Client DecisionLog ExactAppender MessageListener Mirror Producer "
            "PullConsumer PushConsumer SimpleConsumer StagedWrites TransactionListener TransactionProducer "
            "create_reply",
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
