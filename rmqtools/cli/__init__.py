"""The command ``rmqtools``: one file per group of commands.

Exit codes: 0 done, 1 refused or failed (one line on standard error: ``error: ...``), 2 wrong usage,
130 and 143 interrupted by SIGINT and SIGTERM; a command may define more.
"""

import logging
import signal
import sys
from types import FrameType

import typer
from rich.console import Console

from rmqtools.cli import allocate, cluster, dlq, group, pin
from rmqtools.errors import RocketMQError

app = typer.Typer(
    name="rmqtools",
    help="Tools for Apache RocketMQ.",
    rich_markup_mode="markdown",  # paragraphs of help texts flow
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(cluster.app, name="cluster")
app.add_typer(group.app, name="group")
app.add_typer(pin.app, name="pin")
app.add_typer(dlq.app, name="dlq")
app.command("allocate")(allocate.allocate)


@app.callback()
def _root() -> None:
    """Make typer expect a group even while there is only one."""


class _Interrupted(BaseException):
    """SIGINT or SIGTERM, as an exception: blocks are left in order, so what was started is stopped."""


def main() -> None:
    """Run the command line of this process and exit."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    logging.getLogger("rmqtools").setLevel(logging.ERROR)  # what fails is said once, at the end
    try:
        app()
    except RocketMQError as error:
        sys.exit(_fail(str(error), 1))
    except _Interrupted as error:
        number = signal.Signals(error.args[0])
        sys.exit(_fail(f"interrupted by {number.name}; what was started is stopped", 128 + number))


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # one is enough: the clean-up is not to be interrupted
    raise _Interrupted(number)


def _fail(text: str, code: int) -> int:
    """Say why on standard error, as it is: paths and addresses must not be wrapped or coloured."""
    Console(stderr=True, soft_wrap=True).print(f"error: {text}", markup=False, highlight=False)
    return code
