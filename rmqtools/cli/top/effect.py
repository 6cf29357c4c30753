"""Effect of new pins on a group, as the text that a user confirms. Pure."""

from collections import Counter
from collections.abc import Sequence

from rmqtools.allocate import Pins
from rmqtools.cli.pin import consumed_topics, members_on, owners_after
from rmqtools.group import GroupView
from rmqtools.number_of import number_of

_ABSENT = {
    "nobody": "While no such machine is connected, nobody consumes: messages wait.",
    "everybody": "While no such machine is connected, all members share.",
}


def pin_effect(view: GroupView, pins: Pins, current: Pins) -> str:
    """Say what becomes of the group's members and queues if these pins replace the current ones."""
    getting = set(members_on([member.client_id for member in view.members], pins.ips))
    lines = [f"Pin group {view.group} to {', '.join(pins.ips)}?", ""]
    lines += [_shares(view, pins, getting), _ABSENT[pins.when_absent or "nobody"]]
    if current.ips:
        by = f" of {current.set_by}" if current.set_by else ""
        lines.append(f"Replaces the pins{by}: {', '.join(current.ips)} (version {current.version}).")
    return "\n".join(lines)


def unpin_effect(view: GroupView, current: Pins) -> str:
    """Say what becomes of the group's members and queues if its pins are removed."""
    by = f", set by {current.set_by}" if current.set_by else ""
    removed = f"Remove the pins of group {view.group}?"
    old = f"They are {', '.join(current.ips)} (version {current.version}{by})."
    return "\n".join([removed, "", old, _shares(view, Pins(0), {m.client_id for m in view.members})])


def _shares(view: GroupView, pins: Pins, getting: set[str]) -> str:
    after = owners_after(view, pins)
    moved = sum(set(view.owners(queue)) != set(owners) for queue, owners in after.items())
    counts = Counter(owner for owners in after.values() for owner in owners)
    without = len(view.members) - len(getting)
    members, queues = number_of(len(view.members), "member"), number_of(len(after), "queue")
    text = f"{len(getting)} of {members} share all {queues}"
    text += f" ({_range([counts[client_id] for client_id in sorted(getting)])} each)"
    rest = f", the other {without} get none" if without else ""
    topics = ", ".join(sorted(consumed_topics(view)))
    return f"{text}{rest}.\nMoves {number_of(moved, 'queue')} of {topics}."


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return str(low) if low == high else f"{low} to {high}"
