"""The asynchronous face: the same classes and methods as :mod:`rmqtools`, on the caller's event loop."""

from rmqtools.aio.admin import Admin
from rmqtools.aio.client import Client
from rmqtools.aio.producer import Producer

__all__ = ["Admin", "Client", "Producer"]
