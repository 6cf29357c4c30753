"""The asynchronous face: the same classes and methods as :mod:`rmqtools`, on the caller's event loop."""

from rmqtools.aio.admin import Admin
from rmqtools.aio.client import Client
from rmqtools.aio.producer import Producer
from rmqtools.aio.transaction_producer import TransactionListener, TransactionProducer
from rmqtools.policy.reply import create_reply

__all__ = ["Admin", "Client", "Producer", "TransactionListener", "TransactionProducer", "create_reply"]
