"""Client toolkit for Apache RocketMQ: the blocking face, the values and the errors.

    from rmqtools import Message, Producer, ProducerConfig

    with Producer(ProducerConfig(name_server="127.0.0.1:9876", group="orders")) as producer:
        result = producer.send(Message("topic", b"body", tags="new", keys=["order-1"]))

:mod:`rmqtools.aio` has the same classes for asyncio, :mod:`rmqtools.arrow` reads and writes Arrow batches,
:mod:`rmqtools.cluster` runs a real cluster on this machine.
"""

from rmqtools import errors
from rmqtools.config import ClientConfig, ProducerConfig
from rmqtools.config.consumer import PullConsumerConfig, PushConsumerConfig
from rmqtools.errors import RocketMQError
from rmqtools.model.block import MessageBlock
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.group import ConsumeFromWhere, MessageModel
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.queue import MessageQueue, QueueRange
from rmqtools.model.reply import ReplyMessage
from rmqtools.model.result import Outcome, SendAttempt, SendResult, SendStatus
from rmqtools.model.route import BrokerData, ClusterInfo, Perm, QueueData, TopicRouteData
from rmqtools.model.topic_type import TopicMessageType
from rmqtools.model.transaction import HalfMessage, LocalTransactionState, TransactionSendResult
from rmqtools.sync import (
    Admin,
    Client,
    MessageListener,
    Producer,
    PullConsumer,
    PushConsumer,
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
    "HalfMessage",
    "LocalTransactionState",
    "Message",
    "MessageBlock",
    "MessageExt",
    "MessageListener",
    "MessageModel",
    "MessageQueue",
    "Outcome",
    "Perm",
    "Producer",
    "ProducerConfig",
    "PullConsumer",
    "PullConsumerConfig",
    "PushConsumer",
    "PushConsumerConfig",
    "QueueData",
    "QueueRange",
    "ReplyMessage",
    "RocketMQError",
    "SendAttempt",
    "SendResult",
    "SendStatus",
    "TopicMessageType",
    "TopicRouteData",
    "TransactionListener",
    "TransactionProducer",
    "TransactionSendResult",
    "create_reply",
    "errors",
]
__version__ = "0.2.0"
