"""The option ``--utc`` of every command that reaches a cluster: it is declared once, here."""

from typing import Annotated, Any

import typer
from typer.main import get_command

from rmqtools.cli.moments import show_utc


def _declared(
    utc: Annotated[
        bool,
        typer.Option(
            "--utc",
            envvar="RMQTOOLS_UTC",
            callback=show_utc,
            expose_value=False,
            help="Show times, and read times without an offset, in UTC; not in the zone of this machine.",
        ),
    ] = False,
) -> None:
    """Carry the declaration."""


def add_utc(command: Any) -> None:
    """Give the option to a command as typer runs it, if it reaches a cluster."""
    if any(parameter.envvar == "NAMESRV_ADDR" for parameter in command.params):
        alone = typer.Typer(add_completion=False)
        alone.command()(_declared)
        command.params += get_command(alone).params
