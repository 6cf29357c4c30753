"""The figures of a case: what was measured, what it must be, and whether it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tools.measure.faults.checker import Verdict

_UNOWNED_SECONDS = 21.0  # a round of rebalancing, and a second


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a case."""

    name: str
    value: float | str | None
    bar: str
    is_met: bool
    is_time: bool = False
    """Whether it depends on how fast and how busy the machine is."""

    def __str__(self) -> str:
        value = f"{self.value:.3g}" if isinstance(self.value, float) else str(self.value)
        return f"{self.name} {value}{'' if self.is_met else f' (NOT MET: want {self.bar})'}"


def at_most(name: str, value: float | None, bar: float) -> Figure:
    """Return a figure with an upper bound; None, which never came, does not meet it."""
    return Figure(name, value, f"<= {bar:g}", value is not None and value <= bar)


def within(name: str, seconds: float | None, bar: float) -> Figure:
    """Return a time with an upper bound; None: it never happened."""
    return replace(at_most(f"{name} s", seconds, bar), is_time=seconds is not None)


def holds(name: str, is_met: bool, value: float | str | None = None) -> Figure:
    """Return a figure that is met or not."""
    return Figure(name, value if value is not None else ("yes" if is_met else "no"), "yes", is_met)


def general(
    verdict: Verdict,
    *,
    send_timeout: float,
    unowned: float | None,
    unowned_within: float = _UNOWNED_SECONDS,
) -> list[Figure]:
    """Return the figures of every case; ``unowned``: seconds without an owner, None: no healthy broker."""
    owned = [] if unowned is None else [within("a healthy broker's queue unowned", unowned, unowned_within)]
    return [
        *owned,
        at_most("lost", len(verdict.lost), 0),
        at_most("phantom", verdict.phantom, 0),
        at_most("corrupt", verdict.corrupt, 0),
        at_most("reorder", verdict.reorder, 0),
        at_most("gap", verdict.gap, 0),
        at_most("unexplained copies", verdict.unexplained, 0),
        at_most("sends without an answer", verdict.unanswered, 0),
        within("longest send", verdict.longest_send, send_timeout + 1.0),
    ]


def unmet(figures: Sequence[Figure], *, times: bool = True) -> list[str]:
    """Return the figures that are not met, as text; ``times``: those that depend on the machine, too."""
    return [str(figure) for figure in figures if not figure.is_met and (times or not figure.is_time)]
