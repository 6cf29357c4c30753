"""The clients of this process: one per configuration, made on first use.

Spark keeps Python workers and hands them task after task, so a client outlives the task that made it.
Workers are forked: a client made before the fork belongs to the parent, so each is kept with its process id.
"""

import os
from typing import Final

from rmqtools import Client, ClientConfig

_clients: Final[list[tuple[int, ClientConfig, Client]]] = []


def client_of(config: ClientConfig) -> Client:
    """Return this process's client for a configuration, connected on first use; it is not to be closed."""
    pid = os.getpid()
    for owner, known, client in _clients:
        if owner == pid and known == config:
            return client
    client = Client(config)
    client.start()
    _clients.append((pid, config, client))
    return client
