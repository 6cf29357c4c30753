"""The asynchronous face: the same classes and methods as :mod:`rmqtools`, on the caller's event loop."""

from typing import TYPE_CHECKING

from rmqtools.lazy_names import lazy_names

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "rmqtools.engine.admin.admin": "Admin",
            "rmqtools.engine.consumer.pull_consumer": "PullConsumer",
            "rmqtools.engine.consumer.push_consumer": "MessageListener PushConsumer",
            "rmqtools.engine.consumer.simple_consumer": "SimpleConsumer",
            "rmqtools.engine.exact.appender": "ExactAppender",
            "rmqtools.engine.exact.decision_log": "DecisionLog",
            "rmqtools.engine.exact.mirror": "Mirror",
            "rmqtools.engine.exact.staged_writes": "StagedWrites",
            "rmqtools.engine.producer.producer": "Producer",
            "rmqtools.engine.producer.transaction": "TransactionListener TransactionProducer",
            "rmqtools.engine.reading.client": "Client",
            "rmqtools.policy.reply": "create_reply",
        },
    )

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
