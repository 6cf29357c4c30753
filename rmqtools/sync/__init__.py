"""The blocking face; :mod:`rmqtools` re-exports it. Each method runs its :mod:`rmqtools.aio` namesake."""

from rmqtools.sync.admin import Admin
from rmqtools.sync.client import Client
from rmqtools.sync.producer import Producer

__all__ = ["Admin", "Client", "Producer"]
