"""The asynchronous face: the same classes and methods as :mod:`rmqtools`, on the caller's event loop."""

from rmqtools.engine.admin.admin import Admin
from rmqtools.engine.consumer.pull_consumer import PullConsumer
from rmqtools.engine.consumer.push_consumer import MessageListener, PushConsumer
from rmqtools.engine.consumer.simple_consumer import SimpleConsumer
from rmqtools.engine.exact.appender import ExactAppender
from rmqtools.engine.exact.decision_log import DecisionLog
from rmqtools.engine.exact.mirror import Mirror
from rmqtools.engine.exact.staged_writes import StagedWrites
from rmqtools.engine.producer.producer import Producer
from rmqtools.engine.producer.transaction import TransactionListener, TransactionProducer
from rmqtools.engine.reading.client import Client
from rmqtools.policy.reply import create_reply

__all__ = [
    "Admin",
    "Client",
    "DecisionLog",
    "ExactAppender",
    "MessageListener",
    "Mirror",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "SimpleConsumer",
    "StagedWrites",
    "TransactionListener",
    "TransactionProducer",
    "create_reply",
]
