"""The grid of queues and owners as a widget. Only visible lines are drawn, so 10,000 queues cost no more."""

from collections.abc import Mapping

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rmqtools.cli.top.owners import SHARED, UNKNOWN, UNOWNED, Cell, Line, grid_lines
from rmqtools.model.queue import MessageQueue

_PROBLEMS = {UNOWNED, SHARED, UNKNOWN}


class QueueGrid(ScrollView, can_focus=True):
    """Shows the cells of :mod:`rmqtools.cli.top.owners`. A queue that has just moved is underlined."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._table: Mapping[MessageQueue, Cell] = {}
        self._lines: list[Line] = []

    def show(self, table: Mapping[MessageQueue, Cell]) -> None:
        """Show these queues, in this order."""
        if table != self._table:
            self._table = table
            self._lay_out()

    def on_resize(self) -> None:
        """Lay the queues out for the new width."""
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        """Draw one visible line."""
        number = self.scroll_offset.y + y
        if number >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        label, row = self._lines[number]
        segments = [Segment(label, self.rich_style)]
        segments += [Segment(cell.mark, self.rich_style + _style(cell)) for cell in row]
        return Strip(segments).adjust_cell_length(self.size.width, self.rich_style)

    def _lay_out(self) -> None:
        width = max(self.size.width - 2, 20)  # the scroll bar takes 2
        self._lines = grid_lines(self._table, width)
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()


def _style(cell: Cell) -> Style:
    if cell.mark in _PROBLEMS:
        return Style(color="red", bold=True, underline=cell.moved)
    return Style(color="white", bgcolor=cell.colour, underline=cell.moved, bold=cell.moved)
