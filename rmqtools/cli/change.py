"""Options of every command that changes what is there, and the question before something is lost."""

import sys
from typing import Annotated

import typer

from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.printing import warn
from rmqtools.visible_text import visible

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; change nothing.")]


def agreed(question: str, *, yes: bool, dry_run: bool) -> bool:
    """Ask before something is lost, and return whether to go on. ``--yes`` answers; ``--dry-run`` declines.

    Raises:
        typer.Exit: the answer is no, or there is no terminal to answer.
    """
    if dry_run:
        warn(f"--dry-run changes nothing; without it: {question}")
    if dry_run or yes:
        return not dry_run
    if not sys.stdin.isatty():
        warn(f"error: {question} Nobody can answer here: give --yes")
        raise typer.Exit(ExitCode.NO)
    if not typer.confirm(visible(question), err=True):
        warn("nothing was changed")
        raise typer.Exit(ExitCode.NO)
    return True
