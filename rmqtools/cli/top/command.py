"""The command ``rmqtools top``. Imports textual only when it runs."""

import logging
import sys
from typing import Annotated

import typer

from rmqtools import ClientConfig
from rmqtools.cli.connection import NameServer, Settings, client_config
from rmqtools.cli.moments import duration_option
from rmqtools.cli.printing import Interrupted
from rmqtools.errors import ConfigError


def top(
    name_server: NameServer = "",
    interval: Annotated[float, duration_option("Time between two looks at the cluster.", least=0.2)] = 2.0,
    allowed_groups: Annotated[
        str,
        typer.Option(
            envvar="RMQTOOLS_ALLOWED_GROUPS",
            metavar="PATTERNS",
            help="The groups that may be pinned from here, e.g. `staging-*,test-*`. None by default.",
        ),
    ] = "",
    settings: Settings = None,
) -> None:
    """Watch groups, topics and brokers: rates, lag, and which member owns which queue.

    Enter opens a group. There, p pins the group to the machine of the chosen member and u removes the pins,
    each after a question that names the effect. Nothing else can be changed from here.
    """
    config = client_config(name_server, settings, ClientConfig)
    try:
        from rmqtools.cli.top.app import TopApp
    except ImportError as error:
        raise ConfigError(
            f"rmqtools top needs textual ({error}): install it with pip install 'rmqtools[top]'"
        ) from error
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(
            "rmqtools top reads keys from standard input and draws on standard error, and one of them is no "
            "terminal: redirect neither"
        )
    logging.getLogger("rmqtools").addHandler(logging.NullHandler())  # a line would spoil the picture
    signal = TopApp(config, interval=interval, allowed_groups=allowed_groups).run()
    if signal:
        raise typer.Exit(Interrupted(signal).exit_code)
