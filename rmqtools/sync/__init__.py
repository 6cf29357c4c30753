"""The blocking face; :mod:`rmqtools` hands it on. Its methods run those of :mod:`rmqtools.aio`."""

from typing import TYPE_CHECKING

from rmqtools.lazy_names import lazy_names

if TYPE_CHECKING:
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
