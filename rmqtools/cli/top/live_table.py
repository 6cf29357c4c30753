"""A table that changes while it is shown: the cursor stays on its row, only changed cells are drawn."""

from collections.abc import Sequence
from typing import Literal

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from rmqtools.cli.printing import Column, fitting
from rmqtools.visible_text import visible

Line = tuple[str, Sequence[str]]
"""A row's key, and its cells."""
_BORDERS = 4  # a cell's padding at both ends, and the scroll bar


class LiveTable(DataTable[Text]):
    """A table with a key for each row. Where it is too narrow, less important columns are left out.

    Args:
        columns: names, and how soon each leaves.
        numbers: columns of numbers, to the right; the others are to the left.
        alarms: columns whose text is about a problem.
    """

    BINDINGS = [Binding("enter", "select_cursor", "open")]  # noqa: RUF012 - textual reads the class attribute

    def __init__(
        self, columns: Sequence[Column], *, numbers: Sequence[str] = (), alarms: Sequence[str] = (), id: str
    ) -> None:
        super().__init__(cursor_type="row", id=id, cell_padding=1)
        self._all = columns
        self._numbers = numbers
        self._alarms = alarms
        self._widths: dict[int, int] = {}
        self._lines: list[Line] = []
        self._is_stale = False

    @property
    def key(self) -> str | None:
        """The key of the row under the cursor."""
        return self._lines[self.cursor_row][0] if 0 <= self.cursor_row < len(self._lines) else None

    @property
    def names(self) -> list[str]:
        """The columns that are shown."""
        return [self._all[index].name for index in self._widths]

    def show(self, lines: Sequence[Line], *, stale: bool = False) -> None:
        """Show these rows. Rows in another order, new and lost ones cost a new table; stale ones are dim."""
        shown: list[Line] = [(key, [visible(text) for text in texts]) for key, texts in lines]
        widths = self._fitting(shown)
        same = [key for key, _ in shown] == [key for key, _ in self._lines]
        if same and widths == self._widths and stale == self._is_stale:
            self._update(shown)
        else:
            self._is_stale = stale
            self._replace(shown, widths)
        self._lines = shown

    def on_resize(self) -> None:
        """Choose the columns for the new width."""
        self.show(self._lines, stale=self._is_stale)

    def _fitting(self, lines: Sequence[Line]) -> dict[int, int]:
        """Return the widths of the columns that fit, by index.

        They are given to the table: those that it finds out by itself are late where rows change meanwhile.
        """
        widths = [
            max(cell_len(text) for text in (column.name, *(texts[index] for _, texts in lines)))
            for index, column in enumerate(self._all)
        ]
        kept = fitting(self._all, widths, max(self.size.width - _BORDERS, 1))
        return {index: widths[index] for index in kept}

    def _update(self, lines: Sequence[Line]) -> None:
        for row, ((_, before), (_, after)) in enumerate(zip(self._lines, lines, strict=True)):
            for place, index in enumerate(self._widths):
                if before[index] != after[index]:
                    cell = self._cell(index, after[index])
                    self.update_cell_at(Coordinate(row, place), cell)

    def _replace(self, lines: Sequence[Line], widths: dict[int, int]) -> None:
        key, top = self.key, self.scroll_y
        if widths != self._widths:
            self.clear(columns=True)
            self._widths = widths
            for index, width in widths.items():
                name = self._all[index].name
                self.add_column(Text(name.upper(), justify=self._side(name)), key=name, width=width)
        else:
            self.clear()
        for name, texts in lines:
            self.add_row(*(self._cell(index, texts[index]) for index in widths), key=name)
        keys = [name for name, _ in lines]
        if key in keys:
            self.move_cursor(row=keys.index(key), scroll=False)
            self.scroll_to(y=top, animate=False)

    def _cell(self, index: int, text: str) -> Text:
        name = self._all[index].name
        style = "dim" if self._is_stale else "bold red" if name in self._alarms else ""
        return Text(text, style=style, justify=self._side(name))

    def _side(self, name: str) -> Literal["left", "right"]:
        return "right" if name in self._numbers else "left"
