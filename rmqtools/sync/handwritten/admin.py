"""The base class of blocking administration: made from settings, or on a blocking client."""

from rmqtools import aio
from rmqtools.config import ClientConfig
from rmqtools.sync.client import Client
from rmqtools.sync.lifecycle import Blocking


class BlockingAdmin(Blocking):
    """Blocking administration without the methods of one line."""

    def __init__(self, config: ClientConfig | Client) -> None:
        self._admin = aio.Admin(config.asynchronous if isinstance(config, Client) else config)
        super().__init__(self._admin)
