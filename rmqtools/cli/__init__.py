"""The command ``rmqtools``: one file per group of commands, imported when one of them runs.

Exit codes are in :mod:`rmqtools.cli.exit_code`; after SIGINT 130, after SIGTERM 143.
"""

import logging
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from rmqtools import __version__
from rmqtools.cli.exit_code import exit_code_of
from rmqtools.cli.printing import Interrupted, say, warn
from rmqtools.cli.root.commands import COMMANDS
from rmqtools.cli.root.lazy_group import lazy_app
from rmqtools.compiled import state
from rmqtools.errors import RocketMQError
from rmqtools.model.codes import MQ_VERSION_NAME

app = lazy_app(
    COMMANDS,
    name="rmqtools",
    help="Tools for Apache RocketMQ.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        python = sys.version.split()[0]
        say(
            f"rmqtools {__version__} (Python {python}, protocol {MQ_VERSION_NAME}, compiled module {state()})"
        )
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Make typer know the options that stand before a command."""


def main() -> None:
    """Run the command line of this process and exit."""
    _open_closed_streams()
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    logging.getLogger("rmqtools").setLevel(logging.ERROR)  # a failure is reported once, at the end
    try:
        app()
    except RocketMQError as error:
        sys.exit(_fail(str(error), exit_code_of(error)))
    except Interrupted as error:
        name = signal.Signals(error.args[0]).name
        sys.exit(_fail(f"interrupted by {name}; what was started is stopped", error.exit_code))


def _open_closed_streams() -> None:
    """Open streams that the caller has closed (``<&-``): input is empty then, and output goes nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - until the end


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
    raise Interrupted(number)


def _fail(text: str, code: int) -> int:
    """Print the reason on standard error, neither wrapped nor coloured: it may hold paths and addresses."""
    warn(f"error: {text}")
    return code
