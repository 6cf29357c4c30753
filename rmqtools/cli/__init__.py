"""The command ``rmqtools``: one file per group of commands.

Exit codes: 0 done; 1 refused or failed (one line on standard error: ``error: ...``); 2 wrong usage;
130 interrupted by SIGINT, 143 by SIGTERM. A command may define more; docs/commands.md lists them.
"""

import logging
import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from rmqtools import __version__
from rmqtools.cli import (
    allocate,
    broker,
    cluster,
    consume,
    dlq,
    group,
    group_offsets,
    group_watch,
    message,
    pin,
    produce,
    profile,
    spark,
    topic,
)
from rmqtools.cli.printing import Interrupted, say, warn
from rmqtools.cli.top import command as top
from rmqtools.errors import RocketMQError
from rmqtools.model.codes import MQ_VERSION_NAME

app = typer.Typer(
    name="rmqtools",
    help="Tools for Apache RocketMQ.",
    rich_markup_mode="markdown",  # paragraphs of help texts flow
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(topic.app, name="topic")
app.add_typer(message.app, name="message")
app.add_typer(broker.app, name="broker")
app.add_typer(cluster.app, name="cluster")
app.add_typer(group.app, name="group")
app.add_typer(pin.app, name="pin")
app.add_typer(dlq.app, name="dlq")
app.add_typer(profile.app, name="profile")
app.add_typer(spark.app, name="spark")
group.app.command("reset")(group_offsets.reset)
group.app.command("skip")(group_offsets.skip)
group.app.command("watch")(group_watch.watch)
app.command("produce")(produce.produce)
app.command("consume")(consume.consume)
app.command("health")(broker.health)
app.command("allocate")(allocate.allocate)
app.command("top")(top.top)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"rmqtools {__version__} (Python {sys.version.split()[0]}, protocol {MQ_VERSION_NAME})")
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
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    logging.getLogger("rmqtools").setLevel(logging.ERROR)  # a failure is reported once, at the end
    try:
        app()
    except RocketMQError as error:
        sys.exit(_fail(str(error), 1))
    except Interrupted as error:
        name = signal.Signals(error.args[0]).name
        sys.exit(_fail(f"interrupted by {name}; what was started is stopped", error.exit_code))


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
    raise Interrupted(number)


def _fail(text: str, code: int) -> int:
    """Print the reason on standard error, neither wrapped nor coloured: it may hold paths and addresses."""
    warn(f"error: {text}")
    return code
