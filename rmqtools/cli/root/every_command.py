"""The parts of every command: the option ``--utc``, the spellings of earlier versions, and a quiet end.

If the program that reads a command's output has ended (``rmqtools ... | head``), the command ends without an
error, with exit code 0. A full disk, or a folder that cannot be written, is an error that names it.
"""

import functools
import sys
from collections.abc import Mapping
from copy import copy
from typing import Annotated, Any

import typer
from typer.main import get_command

from rmqtools.cli.moments import show_utc
from rmqtools.cli.printing import drop_output
from rmqtools.errors import RocketMQError

OLD_SPELLINGS: Mapping[str, Mapping[str, str]] = {
    "allocate": {"-o": "--option", "--queues": "--queue-counts"},
    "cluster up": {"--version": "--server-version"},
    "consume": {"--count": "--limit", "-c": "--limit", "-f": "--format-string"},
    "dlq export": {"-f": "--output"},
    "group check": {"--limit": "--max-stall"},
}
"""By command: options of earlier versions, which it still accepts; help and errors name the new ones."""


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


def accept_old(command: Any, spellings: Mapping[str, str]) -> None:
    """Make a command as typer runs it take the old spellings as the new ones."""
    make_parser = command.make_parser

    def make_tolerant_parser(context: Any) -> Any:
        parser = make_parser(context)
        by_name = {name: option for option in command.params for name in option.opts}
        for old, new in spellings.items():
            twin = copy(by_name[new])
            twin.opts = [old]
            twin.add_to_parser(parser, context)
        return parser

    command.make_parser = make_tolerant_parser


def end_with_reader(command: Any) -> None:
    """Make a command as typer runs it end quietly when its output is closed, whatever it printed with."""
    run = command.callback

    @functools.wraps(run)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        try:
            result = run(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError as error:
            drop_output()
            raise typer.Exit from error
        except RocketMQError:  # RemotingTimeoutError is an OSError too
            raise
        except OSError as error:
            if error.filename is None:  # of a write
                drop_output()
            place = error.filename or "standard output, or a file,"
            raise RocketMQError(f"{place} cannot be used: {error.strerror}") from error
        return result

    command.callback = quiet
