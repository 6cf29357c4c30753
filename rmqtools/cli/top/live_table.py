"""A table that changes while it is shown: the cursor stays on its row, only changed cells are drawn."""

from collections.abc import Sequence

from rich.text import Text
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from rmqtools.visible_text import visible

Line = tuple[str, Sequence[str]]
"""A row's key, and its cells."""


class LiveTable(DataTable[Text]):
    """A table with a key for each row.

    Args:
        names: of the columns; the first is to the left, the others to the right if ``numbers`` names them.
        numbers: columns of numbers.
        alarms: columns whose text is about a problem.
    """

    def __init__(
        self, names: Sequence[str], *, numbers: Sequence[str] = (), alarms: Sequence[str] = (), id: str
    ) -> None:
        super().__init__(cursor_type="row", id=id, cell_padding=1)
        self._names = names
        self._numbers = numbers
        self._alarms = alarms
        self._lines: list[Line] = []

    def on_mount(self) -> None:
        """Make the columns."""
        for name in self._names:
            title = Text(name.upper(), justify="right" if name in self._numbers else "left")
            self.add_column(title, key=name)

    @property
    def key(self) -> str | None:
        """The key of the row under the cursor."""
        return self._lines[self.cursor_row][0] if 0 <= self.cursor_row < len(self._lines) else None

    def show(self, lines: Sequence[Line]) -> None:
        """Show these rows. Rows in another order, new and lost ones cost a new table."""
        shown = list(lines)
        if [key for key, _ in shown] == [key for key, _ in self._lines]:
            self._update(shown)
        else:
            self._replace(shown)
        self._lines = shown

    def _update(self, lines: Sequence[Line]) -> None:
        for row, ((_, before), (_, after)) in enumerate(zip(self._lines, lines, strict=True)):
            for column, text in enumerate(after):
                if before[column] != text:
                    cell = self._cell(column, text)
                    self.update_cell_at(Coordinate(row, column), cell, update_width=True)

    def _replace(self, lines: Sequence[Line]) -> None:
        key, top = self.key, self.scroll_y
        self.clear()
        for name, texts in lines:
            self.add_row(*(self._cell(column, text) for column, text in enumerate(texts)), key=name)
        keys = [name for name, _ in lines]
        if key in keys:
            self.move_cursor(row=keys.index(key), scroll=False)
            self.scroll_to(y=top, animate=False)

    def _cell(self, column: int, text: str) -> Text:
        name = self._names[column]
        style = "bold red" if name in self._alarms else ""
        return Text(visible(text), style=style, justify="right" if name in self._numbers else "left")
