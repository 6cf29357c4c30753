"""One group: its members, the grid of queues and owners, and pinning from there."""

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Footer, Static

from rmqtools import aio
from rmqtools.allocate import NO_PINS, Pins, client_address
from rmqtools.cli.pin import consumed_topics, not_allowed, who
from rmqtools.cli.printing import now
from rmqtools.cli.top.live_table import LiveTable
from rmqtools.cli.top.owners import Letters, Owners, cells, owners_of
from rmqtools.cli.top.pin_dialog import PinDialog
from rmqtools.cli.top.queue_grid import QueueGrid
from rmqtools.cli.top.rates import bars, short
from rmqtools.cli.top.sampler import GroupLook
from rmqtools.errors import RocketMQError
from rmqtools.group import GroupMember, pin_obstacles
from rmqtools.visible_text import visible, visible_lines


class GroupScreen(Screen[None]):
    """Shows a group until Escape."""

    CSS = """
    GroupScreen #title { height: auto; }
    GroupScreen #members { height: auto; max-height: 40%; }
    GroupScreen #grid { height: 1fr; border-top: solid $primary; }
    """
    BINDINGS = [  # noqa: RUF012 - textual reads the class attribute
        Binding("escape,q", "app.pop_screen", "back"),
        Binding("p", "pin", "pin to this machine"),
        Binding("u", "unpin", "remove pins"),
        Binding("tab", "app.focus_next", "members/queues"),
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

    def compose(self) -> ComposeResult:
        """Lay out title, members and queues."""
        yield Static(visible(f"{self.group}: looking"), id="title", markup=False)
        names = ("", "member", "queues", "strategy", "note")
        yield LiveTable(names, numbers=("queues",), alarms=("note",), id="members")
        yield QueueGrid(id="grid")
        yield Footer()

    def show(self, look: GroupLook) -> None:
        """Show the group at another moment."""
        view = look.view
        self._letters.learn(member.client_id for member in view.members)
        owners = owners_of(view)
        table = cells(view, owners, self._owners, self._letters)
        moved = sum(cell.moved for cell in table.values())
        if moved:
            self._moved = f"{moved} queues moved at {now():%H:%M:%S}"
        self._owners, self._look = owners, look
        self.query_one("#title", Static).update(visible_lines(self._title(look), indent=""))
        self.query_one("#members", LiveTable).show([self._line(member) for member in view.members])
        self.query_one("#grid", QueueGrid).show(table)

    def _title(self, look: GroupLook) -> str:
        view, rates = look.view, look.meter.rates
        first = f"{view.group}  {len(view.members)} members  lag {look.lag:,}"
        first += f"  out {short(look.meter.rate)}/s {bars(rates, 12)}  {self._moved}"
        pins = look.pins.at(now())
        until = f" until {pins.expires_at:%H:%M} UTC" if pins.expires_at else ""
        pinned = f"pinned to {', '.join(pins.ips)}{until}" if pins.ips else "not pinned"
        found = sorted({finding.kind.value for finding in look.findings})
        return f"{first.rstrip()}\n{pinned}  {'found: ' + ', '.join(found) if found else ''}".rstrip()

    def _line(self, member: GroupMember) -> tuple[str, list[str]]:
        shown = [self._letters.letter(member.client_id), member.client_id]
        if member.error:
            return member.client_id, [*shown, "?", "?", "does not answer"]
        topics = consumed_topics(self._look.view) if self._look else set()
        count = sum(queue.topic in topics for queue in member.queues)
        return member.client_id, [*shown, str(count), member.strategy or "-", ""]

    def action_pin(self) -> None:
        """Ask whether to pin the group to the machine of the member under the cursor."""
        client_id = self.query_one("#members", LiveTable).key
        address = client_address(client_id) if client_id else None
        if self._look is None or address is None:
            self.notify("choose a member whose id has the address of its machine", severity="warning")
            return
        ips = [str(address)]
        obstacles = [*not_allowed(self.group, self._allowed_groups), *pin_obstacles(self._look.view, ips)]
        self._ask(self._look, Pins(0, ips, when_absent="nobody", set_by=who()), obstacles)

    def action_unpin(self) -> None:
        """Ask whether to remove the group's pins."""
        if self._look is None or not self._look.pins.ips:
            self.notify("this group is not pinned")
            return
        self._ask(self._look, NO_PINS, [])

    @work
    async def _ask(self, look: GroupLook, pins: Pins, obstacles: list[str]) -> None:
        """Ask, then write to all name servers."""
        answer = await self.app.push_screen_wait(PinDialog(look.view, pins, look.pins, obstacles))
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
