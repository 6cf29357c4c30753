"""Choice of dead letters: all, those with a key, or those with values of properties."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from rmqtools import MessageExt
from rmqtools.cli.pairs import pairs

Key = Annotated[
    str | None, typer.Option("--key", "-k", metavar="KEY", help="Only messages that have this key.")
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="NAME=VALUE",
        help="Only messages whose property NAME is VALUE; several times: all of them. TAGS is the tag.",
    ),
]


@dataclass(frozen=True, slots=True)
class Choice:
    """Dead letters that are wanted; ``properties``: all of them must be equal."""

    key: str | None
    properties: Mapping[str, str]

    @property
    def is_all(self) -> bool:
        """True if every dead letter is chosen."""
        return self.key is None and not self.properties

    def fits(self, message: MessageExt) -> bool:
        """Return whether a message is wanted."""
        if self.key is not None and self.key not in (message.keys or "").split():
            return False
        return all(message.properties.get(name) == value for name, value in self.properties.items())


def choice_of(key: str | None, where: Sequence[str] | None) -> Choice:
    """Return the choice of a command's options.

    Raises:
        ConfigError: ``--where`` is not of the form NAME=VALUE.
    """
    return Choice(key, pairs(where))
