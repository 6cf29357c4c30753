"""The base class of blocking administration: made from settings, or on a blocking client."""

from rmqtools import aio
from rmqtools.config import ClientConfig
from rmqtools.sync.client import Client
from rmqtools.sync.lifecycle import Blocking


class BlockingAdmin(Blocking):
    """Blocking administration without the methods of one line."""

    def __init__(self, config: ClientConfig | Client, *, partial: bool = False) -> None:
        core = config.asynchronous if isinstance(config, Client) else config
        self._admin = aio.Admin(core, partial=partial)
        super().__init__(self._admin)
