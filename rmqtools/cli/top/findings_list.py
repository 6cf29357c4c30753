"""The findings of a cluster, the worst on top, each with the command that helps."""

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

from rich.text import Text
from textual.binding import Binding
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from rmqtools.group import Finding, FindingKind
from rmqtools.visible_text import visible

_MEMBER = (
    FindingKind.LISTENER_SLOW,
    FindingKind.QUEUE_BLOCKED,
    FindingKind.QUEUE_NOT_FETCHED,
    FindingKind.MEMBER_FAILS,
)
_PINS = (FindingKind.PINS_DIFFER, FindingKind.PINNED_IP_ABSENT)
_NAME_SERVERS = (FindingKind.NAME_SERVER_SILENT, FindingKind.NAME_SERVER_INCOMPLETE)
_DISK = (FindingKind.DISK_FULL, FindingKind.DISK_NEARLY_FULL)


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding, and the group that has it; "" if a broker has it."""

    group: str
    finding: Finding

    @property
    def name(self) -> str:
        """The group, the server, or this machine."""
        return self.group or self.finding.subject or "this machine"


class FindingsList(OptionList):
    """A list of problems; each takes as many lines as its text needs."""

    BINDINGS = [Binding("enter", "select", "open")]  # noqa: RUF012 - textual reads the class attribute

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._problems: list[Problem] = []
        self._is_stale: bool | None = None

    @property
    def group(self) -> str:
        """The group of the problem under the cursor; "" if there is none."""
        place = self.highlighted
        return self._problems[place].group if place is not None and place < len(self._problems) else ""

    def show(self, problems: Sequence[Problem], *, nothing: str, stale: bool = False) -> None:
        """Show these problems, in this order; ``nothing``: the text if there are none."""
        texts = [_text(one, stale=stale) for one in problems] or [Text(nothing, style="dim" if stale else "")]
        shown = [self.get_option_at_index(place).prompt for place in range(self.option_count)]
        if shown == texts and stale == self._is_stale:
            return
        before = self._problems[self.highlighted] if self._problems and self.highlighted is not None else None
        self._problems, self._is_stale = list(problems), stale
        self.clear_options()
        self.add_options([Option(text) for text in texts])
        kept = [place for place, one in enumerate(problems) if before and _same(one, before)]
        self.highlighted = kept[0] if kept else 0


def _same(one: Problem, other: Problem) -> bool:
    """Return whether both are about the same; texts have seconds in them, so they change."""
    return (one.group, one.finding.kind, one.finding.subject) == (
        *(other.group, other.finding.kind),
        other.finding.subject,
    )


def _text(problem: Problem, *, stale: bool) -> Text:
    found = problem.finding
    styles = ("dim", "dim", "dim") if stale else ("bold red", "", "green")
    text = Text()
    text.append(visible(f"{problem.name}: {found.kind.value}") + "\n", style=styles[0])
    text.append(visible(found.text) + "\n", style=styles[1])
    return text.append(visible(f"$ {_remedy(found, problem.group)}"), style=styles[2])


def _remedy(finding: Finding, group: str) -> str:
    """Return the command line to type next; ``group``: the group that has the problem; "": none has."""
    if not group:
        return _broker_remedy(finding)
    if finding.kind in _MEMBER and finding.subject:
        return f"rmqtools group show {quote(group)} --member {quote(finding.subject)} --stack"
    if finding.kind == FindingKind.DEAD_LETTERS:
        return f"rmqtools dlq list -g {quote(group)}"
    if finding.kind == FindingKind.PIN_COPIES_DIFFER:
        return f"rmqtools group check {quote(group)} --repair"
    if finding.kind in _PINS:
        return f"rmqtools pin show -g {quote(group)}"
    if finding.kind == FindingKind.BROKER_SILENT:
        return "rmqtools broker status"
    return f"rmqtools group show {quote(group)}"


def _broker_remedy(finding: Finding) -> str:
    if finding.kind == FindingKind.BROKER_READ_ONLY:
        return f"rmqtools broker undrain {quote(finding.subject)}"
    if finding.kind in _NAME_SERVERS:
        return f"rmqtools health -n {quote(finding.subject)}"
    if finding.kind in _DISK:
        return f"rmqtools broker config {quote(finding.subject)} --match reserved"
    return "rmqtools broker status"
