"""Options that select messages: how many, with which tags, by which condition."""

from typing import Annotated

import typer

Limit = Annotated[int | None, typer.Option(min=1, help="At most this many messages. Default: all.")]
Tags = Annotated[str | None, typer.Option(metavar="TAGS", help="Only these tags: 'a || b'.")]
Sql = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="Only messages whose properties meet this SQL92 condition."),
]
