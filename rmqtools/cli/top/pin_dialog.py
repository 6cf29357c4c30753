"""The question before a pin is set or removed: names its effect, and sets nothing by itself."""

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from rmqtools.allocate import Pins
from rmqtools.cli.top.effect import pin_effect, unpin_effect
from rmqtools.group import GroupView
from rmqtools.visible_text import visible_lines


class PinDialog(ModalScreen[Pins | None]):
    """Ask for one change of pins. Its result: the pins to set; None: change nothing.

    Args:
        view: the group.
        pins: to set; without machines: to remove the current ones.
        current: those in force.
        obstacles: why it is refused; then only "no" can be answered.
    """

    CSS = """
    PinDialog { align: center middle; }
    PinDialog > Vertical { width: 72; max-width: 95%; height: auto; border: heavy $warning; padding: 0 1;
                           background: $surface; }
    """
    BINDINGS = [  # noqa: RUF012 - textual reads the class attribute
        Binding("y", "answer(True)", "yes"),
        Binding("w", "turn", "who consumes while it is absent"),
        Binding("n,escape", "answer(False)", "no"),
    ]

    def __init__(self, view: GroupView, pins: Pins, current: Pins, obstacles: Sequence[str] = ()) -> None:
        super().__init__()
        self._view = view
        self._pins = pins
        self._current = current
        self._obstacles = obstacles

    def compose(self) -> ComposeResult:
        """Show the question."""
        with Vertical():
            yield Static(visible_lines(self.question, indent=""), id="question", markup=False)

    @property
    def question(self) -> str:
        """The text: the effect, then what the keys do."""
        if not self._pins.ips:
            return f"{unpin_effect(self._view, self._current)}\n\ny: remove them   n: change nothing"
        text = pin_effect(self._view, self._pins, self._current)
        if self._obstacles:
            listed = "\n".join(f"- {obstacle}" for obstacle in self._obstacles)
            return f"{text}\n\nRefused, because:\n{listed}\n\nn: back"
        return f"{text}\n\ny: pin it   w: change who consumes meanwhile   n: change nothing"

    def action_turn(self) -> None:
        """Let the other ones consume while no pinned machine is connected."""
        if self._pins.ips:
            waits = self._pins.when_absent == "nobody"
            self._pins = replace(self._pins, when_absent="everybody" if waits else "nobody")
            self.query_one("#question", Static).update(visible_lines(self.question, indent=""))

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        if yes and self._obstacles:
            return
        self.dismiss(self._pins if yes else None)
