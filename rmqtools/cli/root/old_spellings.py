"""Options of earlier versions, which commands go on to accept: help and errors name the new ones."""

from collections.abc import Mapping
from copy import copy
from typing import Any

OLD_SPELLINGS: Mapping[str, Mapping[str, str]] = {
    "allocate": {"-o": "--option", "--queues": "--queue-counts"},
    "cluster up": {"--version": "--server-version"},
    "consume": {"--count": "--limit", "-c": "--limit", "-f": "--format-string"},
    "dlq export": {"-f": "--output"},
    "group check": {"--limit": "--max-stall"},
}


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
