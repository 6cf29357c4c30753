"""The names of ``rocketmq.client``: producers, the push consumer, messages, statuses."""

from rmqtools.compat.consts import MessageProperty
from rmqtools.compat.exceptions import NullPointerException
from rmqtools.compat.message import Message, ReceivedMessage
from rmqtools.compat.producer import Producer
from rmqtools.compat.push_consumer import PushConsumer
from rmqtools.compat.status import (
    ConsumeStatus,
    MessageModel,
    SendResult,
    SendStatus,
    TraceModel,
    TransactionStatus,
)
from rmqtools.compat.transaction_producer import TransactionMQProducer

__all__ = [
    "ConsumeStatus",
    "Message",
    "MessageModel",
    "MessageProperty",
    "NullPointerException",
    "Producer",
    "PushConsumer",
    "ReceivedMessage",
    "SendResult",
    "SendStatus",
    "TraceModel",
    "TransactionMQProducer",
    "TransactionStatus",
]
