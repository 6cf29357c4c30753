"""A bar on standard error for work on many messages. Apart from printing: importing bars takes 40 ms."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from rmqtools.visible_text import visible


@contextmanager
def progress_bar(what: str, total: int, *, hidden: bool = False) -> Iterator[Callable[[], None]]:
    """Show a bar, the rate and the time left on standard error, if that is a terminal.

    ``hidden``: show nothing, since the results go to the same terminal.

    Yields:
        To be called for each item that is done.
    """
    if hidden or not sys.stderr.isatty():
        yield lambda: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(visible(what), total=total)
        yield lambda: bar.advance(task)


class _Rate(ProgressColumn):
    """Items a second."""

    def render(self, task: Task) -> Text:
        """See :meth:`ProgressColumn.render`."""
        return Text(f"{task.speed or 0:.0f}/s")
