"""The keys of ``top``, and what its columns mean."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

_TEXT = """\
f  findings, the worst on top, each with the command that helps
g  groups      t  topics      b  brokers
/  show only names that contain a text; Escape shows all again
s  sort by name, rate or lag
Enter  open a group: members, owners, lag and age of each queue
       there: l owners or lag, p pin, u remove pins, Escape back
q  quit

LAG   messages stored and not consumed     DEAD  dead letters
AGE   of the oldest message not consumed   OUT/S consumed a second
Dim rows are old: the line above the keys says since when.
A broker that is gone or does not answer keeps its line.

Escape: back"""


class HelpScreen(ModalScreen[None]):
    """Shows the keys until any of Escape, ? and q."""

    CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Vertical { width: 74; max-width: 100%; height: auto; border: heavy $primary; padding: 0 1;
                            background: $surface; }
    """
    BINDINGS = [  # noqa: RUF012 - textual reads the class attribute
        Binding("escape,question_mark,q,enter", "dismiss", "back"),
    ]

    def compose(self) -> ComposeResult:
        """Show the text."""
        with Vertical():
            yield Static(_TEXT, markup=False)
