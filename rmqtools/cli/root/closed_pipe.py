"""The end of a command whose output nobody reads any more (``rmqtools ... | head``): quiet, exit code 0."""

import functools
import sys
from typing import Any

import typer

from rmqtools.cli.printing import drop_output


def end_with_reader(command: Any) -> None:
    """Make a command as typer runs it end so, whatever it printed with."""
    run = command.callback

    @functools.wraps(run)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        try:
            result = run(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError as error:
            drop_output()
            raise typer.Exit from error
        return result

    command.callback = quiet
