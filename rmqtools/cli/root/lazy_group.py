"""A group of commands whose modules are imported when they run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from rmqtools.cli.root.every_command import OLD_SPELLINGS, accept_old, add_utc, end_with_reader

MARKUP: Any = "markdown"  # paragraphs of help texts flow


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command, or a group of commands, by name.

    Attributes:
        module: where it is.
        attribute: the function, or the ``typer.Typer`` of a group.
        summary: the first sentence of its help, for the list of commands. A test compares it.
    """

    module: str
    attribute: str
    summary: str


def lazy_app(commands: Mapping[str, LazyCommand], **settings: Any) -> typer.Typer:
    """Return an app with these commands; ``settings`` are those of ``typer.Typer``."""
    app = typer.Typer(cls=_group_of(commands), rich_markup_mode=MARKUP, **settings)
    for name, command in commands.items():
        app.command(name, help=command.summary)(_placeholder)
    return app


@cache
def load(name: str, command: LazyCommand) -> Any:
    """Import a command, and return it as typer runs it; made once in a process."""
    found = getattr(import_module(command.module), command.attribute)
    alone = typer.Typer(rich_markup_mode=MARKUP, callback=_placeholder, add_completion=False)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name)
    else:
        alone.command(name)(found)
    loaded: Any = get_command(alone)
    for path, leaf in _leaves(name, loaded.commands[name]):
        add_utc(leaf)
        accept_old(leaf, OLD_SPELLINGS.get(path, {}))
        end_with_reader(leaf)
    return loaded.commands[name]


def _leaves(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
    else:
        for name, child in children.items():
            yield from _leaves(f"{path} {name}", child)


def _group_of(commands: Mapping[str, LazyCommand]) -> type[TyperGroup]:
    class LazyGroup(TyperGroup):
        """Has placeholders, which are enough for help, and replaces the one that is to run."""

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            """Find the command of a command line, also for completion."""
            name, command, rest = super().resolve_command(ctx, args)
            found = commands.get(name or "")
            return (name, command if found is None else load(str(name), found), rest)

    return LazyGroup


def _placeholder() -> None:
    """Stand in the list of commands."""
