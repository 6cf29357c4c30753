"""``rmqtools cluster stop`` and ``start``: one server of a cluster on this machine."""

from typing import Annotated

import typer

from rmqtools import ClientConfig
from rmqtools.cli.cluster import Directory
from rmqtools.cli.connection import client_config
from rmqtools.cli.printing import say
from rmqtools.cluster import fetch_status, start_server, stop_server
from rmqtools.cluster.local import STOP_GRACE

_ANY_ADDRESS = "127.0.0.1:9876"  # where there is no cluster: start_server raises the error

Name = Annotated[
    str,
    typer.Argument(
        metavar="SERVER", help="broker-a, broker-a-slave-1, ..., namesrv or proxy.", show_default=False
    ),
]


def stop(
    server: Name,
    directory: Directory,
    kill: Annotated[bool, typer.Option("--kill", help="As a crash would, without any farewell.")] = False,
) -> None:
    """Stop one server of a cluster, to see what clients do then. Its messages are kept: see start."""
    was_running = stop_server(directory, server, grace=0 if kill else STOP_GRACE)
    say(f"{server} is stopped" if was_running else f"{server} does not run")


def start(server: Name, directory: Directory) -> None:
    """Start a server of a cluster that was stopped or has died, and wait until it answers."""
    servers = fetch_status(directory)
    address = servers[0].address if servers else _ANY_ADDRESS
    config = client_config(address, None, ClientConfig)
    was_started = start_server(directory, server, config)
    say(f"{server} is started" if was_started else f"{server} runs already")
