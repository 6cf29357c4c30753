"""One group: its members, the grid of queues and owners, and pinning from there."""

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Footer, Static

from rmqtools import aio
from rmqtools.allocate import NO_PINS, Pins, client_address
from rmqtools.cli.moments import clock_text
from rmqtools.cli.pin import consumed_topics, not_allowed, who
from rmqtools.cli.printing import Column, now
from rmqtools.cli.top.live_table import Line, LiveTable
from rmqtools.cli.top.owners import Letters, Owners, cells, owners_of
from rmqtools.cli.top.pin_dialog import PinDialog
from rmqtools.cli.top.queue_grid import QueueGrid
from rmqtools.cli.top.rates import age_text, bars, short
from rmqtools.cli.top.sampler import GroupLook
from rmqtools.errors import RocketMQError
from rmqtools.group import GroupMember, pin_obstacles
from rmqtools.model.queue import queue_name
from rmqtools.number_of import number_of
from rmqtools.visible_text import visible, visible_lines

_WIDE = 110  # columns of a terminal
_MOST_LAGS = 200  # queues in the table of lags, the worst ones
_LAGS = (
    *(Column("topic", 2), Column("queue"), Column("owner"), Column("lag")),
    *(Column("age"), Column("end", 1)),
)


class GroupScreen(Screen[None]):
    """Shows a group until Escape."""

    CSS = """
    GroupScreen #title { height: auto; }
    GroupScreen #members { height: auto; max-height: 40%; }
    GroupScreen #queues { height: 1fr; border-top: solid $primary; }
    GroupScreen #grid, GroupScreen #lags { width: 1fr; height: 1fr; }
    """
    BINDINGS = [  # noqa: RUF012 - textual reads the class attribute
        Binding("escape,q", "app.pop_screen", "back"),
        Binding("l", "lags", "owners/lag"),
        Binding("p", "pin", "pin to this machine"),
        Binding("u", "unpin", "remove pins"),
        Binding("tab", "app.focus_next", "next"),
    ]

    def __init__(self, group: str, admin: aio.Admin, *, allowed_groups: str) -> None:
        super().__init__()
        self.group = group
        self._admin = admin
        self._allowed_groups = allowed_groups
        self._letters = Letters()
        self._owners: Owners = {}
        self._look: GroupLook | None = None
        self._moved = ""
        self._wants_lags = False

    def compose(self) -> ComposeResult:
        """Lay out title, members and queues."""
        yield Static(visible(f"{self.group}: looking"), id="title", markup=False)
        columns = [Column(""), Column("member"), Column("queues"), Column("strategy", 1), Column("note")]
        yield LiveTable(columns, numbers=("queues",), alarms=("note",), id="members")
        with Horizontal(id="queues"):
            yield QueueGrid(id="grid")
            yield LiveTable(_LAGS, numbers=("lag", "age", "end"), id="lags")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Show owners, on a wide terminal lag too."""
        self._show_parts()

    def on_resize(self) -> None:
        """Use the new width."""
        self._show_parts()

    def _show_parts(self) -> None:
        wide = self.app.size.width >= _WIDE
        self.query_one("#grid").display = wide or not self._wants_lags
        self.query_one("#lags").display = wide or self._wants_lags

    def action_lags(self) -> None:
        """Show the lag and age of each queue in place of the owners, and back."""
        self._wants_lags = not self._wants_lags
        self._show_parts()

    def show(self, look: GroupLook) -> None:
        """Show the group at another moment."""
        view = look.check.view
        self._letters.learn(member.client_id for member in view.members)
        owners = owners_of(view)
        table = cells(view, owners, self._owners, self._letters)
        moved = sum(cell.moved for cell in table.values())
        if moved:
            self._moved = f"{number_of(moved, 'queue')} moved at {clock_text(now())}"
        self._owners, self._look = owners, look
        self.query_one("#title", Static).update(visible_lines(self._title(look), indent=""))
        self.query_one("#members", LiveTable).show([self._line(look, member) for member in view.members])
        self.query_one("#grid", QueueGrid).show(table)
        self.query_one("#lags", LiveTable).show(self._lags(look, owners))

    def _lags(self, look: GroupLook, owners: Owners) -> list[Line]:
        """Return a line for each queue that is behind, the worst first; the rest only as far as it fits."""
        progress = look.check.view.progress
        order = sorted(progress, key=lambda queue: (-progress[queue].lag, queue))[:_MOST_LAGS]
        lines: list[Line] = []
        for queue in order:
            letters = "".join(self._letters.letter(one) for one in owners.get(queue, ()))
            each = progress[queue]
            known = (queue.topic, queue_name(queue), letters or "-")
            age = age_text(look.check.view.age(queue))
            numbers = (f"{each.lag:,}", age, f"{each.max_offset:,}")
            lines.append((str(queue), [*known, *numbers]))
        return lines

    def _title(self, look: GroupLook) -> str:
        view, rates = look.check.view, look.meter.rates
        first = f"{view.group}  {number_of(len(view.members), 'member')}  lag {look.lag:,}"
        ages = [age for queue in view.progress if (age := view.age(queue)) is not None]
        first += f" ({age_text(max(ages))} old)" if ages else ""
        first += f"  {view.dead_letters.count:,} dead letters" if view.dead_letters.count else ""
        first += f"  out {short(look.meter.rate)}/s {bars(rates, 12)}  {self._moved}"
        pins = look.check.pins.at(now())
        until = f" until {clock_text(pins.expires_at)}" if pins.expires_at else ""
        pinned = f"pinned to {', '.join(pins.ips)}{until}" if pins.ips else "not pinned"
        found = list(dict.fromkeys(finding.kind.value for finding in look.check.findings))
        return f"{first.rstrip()}\n{pinned}  {'found: ' + ', '.join(found) if found else ''}".rstrip()

    def _line(self, look: GroupLook, member: GroupMember) -> Line:
        shown = [self._letters.letter(member.client_id), member.client_id]
        if member.error:
            return member.client_id, [*shown, "?", "?", "does not answer"]
        topics = consumed_topics(look.check.view)
        count = sum(queue.topic in topics for queue in member.queues)
        found = [one.kind.value for one in look.check.findings if one.subject == member.client_id]
        return member.client_id, [*shown, str(count), member.strategy or "-", ", ".join(found)]

    def action_pin(self) -> None:
        """Ask whether to pin the group to the machine of the member under the cursor."""
        client_id = self.query_one("#members", LiveTable).key
        address = client_address(client_id) if client_id else None
        if self._look is None or address is None:
            self.notify("choose a member whose id has the address of its machine", severity="warning")
            return
        ips = [str(address)]
        obstacles = [
            *not_allowed(self.group, self._allowed_groups),
            *pin_obstacles(self._look.check.view, ips),
        ]
        self._ask(self._look, Pins(0, ips, when_absent="nobody", set_by=who()), obstacles)

    def action_unpin(self) -> None:
        """Ask whether to remove the group's pins."""
        if self._look is None or not self._look.check.pins.ips:
            self.notify("this group is not pinned")
            return
        self._ask(self._look, NO_PINS, [])

    @work
    async def _ask(self, look: GroupLook, pins: Pins, obstacles: list[str]) -> None:
        """Ask, then write to all name servers."""
        answer = await self.app.push_screen_wait(PinDialog(look.check.view, pins, look.check.pins, obstacles))
        if answer is None:
            return
        try:
            if answer.ips:
                written = await self._admin.set_pins(self.group, answer)
            else:
                written = await self._admin.clear_pins(self.group, set_by=who())
        except RocketMQError as error:
            self.notify(str(error), severity="error", timeout=20)
            return
        change = f"pinned to {', '.join(written.ips)}" if written.ips else "not pinned any more"
        self.notify(f"{self.group} is {change} (version {written.version}); members follow within 10 s")
