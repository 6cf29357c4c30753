"""Owners of queues, as rows of letters: a letter and a colour for each member. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from string import ascii_letters, digits

from rmqtools.group import GroupView
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.visible_text import visible

LETTERS = ascii_letters.swapcase() + digits  # A first
UNOWNED, SHARED, UNKNOWN = ".", "!", "?"
COLOURS = (
    *("#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#17769b", "#b8860b", "#c2185b", "#00695c"),
    *("#5c6bc0", "#558b2f", "#6d4c41", "#ad1457", "#00838f", "#7b1fa2", "#ef6c00", "#37474f"),
)


class Letters:
    """Gives each member a letter, which it keeps while the view is open."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def learn(self, client_ids: Iterable[str]) -> None:
        """Give a letter to each member that has none."""
        for client_id in client_ids:
            self._known.setdefault(client_id, len(self._known))

    def letter(self, client_id: str) -> str:
        """Return the letter of a member; after 62 members, letters repeat."""
        return LETTERS[self._known[client_id] % len(LETTERS)]

    def colour(self, client_id: str) -> str:
        """Return the background of a member's queues."""
        return COLOURS[self._known[client_id] % len(COLOURS)]


@dataclass(frozen=True, slots=True)
class Cell:
    """A queue: its mark, its colour ("": none), and whether its owner has just changed."""

    mark: str
    colour: str = ""
    moved: bool = False


Owners = Mapping[MessageQueue, tuple[str, ...]]


def owners_of(view: GroupView) -> dict[MessageQueue, tuple[str, ...]]:
    """Return the owners of every queue but those of the retry topic."""
    owners: dict[MessageQueue, list[str]] = {
        queue: [] for queue in view.progress if not queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
    }
    for member in view.members:
        for queue in member.queues:
            if queue in owners:
                owners[queue].append(member.client_id)
    return {queue: tuple(ids) for queue, ids in owners.items()}


def cells(view: GroupView, owners: Owners, before: Owners, letters: Letters) -> dict[MessageQueue, Cell]:
    """Return the cell of every queue; ``before``: the owners at the look before."""
    unclear = any(member.error for member in view.members)
    return {
        queue: _cell(ids, letters, unclear=unclear, moved=queue in before and before[queue] != ids)
        for queue, ids in owners.items()
    }


def _cell(ids: Sequence[str], letters: Letters, *, unclear: bool, moved: bool) -> Cell:
    if not ids:
        return Cell(UNKNOWN if unclear else UNOWNED, "", moved)
    if len(ids) > 1:
        return Cell(SHARED, "", moved)
    return Cell(letters.letter(ids[0]), letters.colour(ids[0]), moved)


Line = tuple[str, list[Cell]]
"""A label, and the cells behind it."""


def grid_lines(table: Mapping[MessageQueue, Cell], width: int) -> list[Line]:
    """Lay the cells out: a row for each topic and broker, as many lines as ``width`` makes necessary.

    A label is the topic, the broker and the first queue id of the line. Names are never cut: where they
    leave no room, they stand on a line of their own.
    """
    rows = [
        (visible(f"{topic} {broker}"), list(queues))
        for (topic, broker), queues in groupby(table, lambda queue: (queue.topic, queue.broker_name))
    ]
    label = max((len(name) for name, _ in rows), default=0)
    id_width = max((len(str(queues[-1].queue_id)) for _, queues in rows), default=1)
    fits = label + id_width + 2 <= width // 2
    start = label + 1 if fits else 1
    room = max(width - start - id_width - 1, 1)
    per_line = room - room % 10 if room > 10 else room
    lines: list[Line] = []
    for name, queues in rows:
        if not fits:
            lines.append((name, []))
        for first in range(0, len(queues), per_line):
            text = name if fits and first == 0 else ""
            head = f"{text:<{start}}{queues[first].queue_id:>{id_width}} "
            lines.append((head, [table[queue] for queue in queues[first : first + per_line]]))
    return lines
