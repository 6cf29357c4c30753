"""The live view: tables of groups, topics and brokers that renew themselves."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widgets import DataTable, Footer, Static, TabbedContent, TabPane

from rmqtools import ClientConfig, aio
from rmqtools.cli.top.group_screen import GroupScreen
from rmqtools.cli.top.live_table import Line, LiveTable
from rmqtools.cli.top.rates import Meter, bars, short
from rmqtools.cli.top.sampler import Row, Sampler
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import RocketMQError
from rmqtools.visible_text import visible

_SHARE = 0.15  # of one core that the view may take; it looks less often where a look costs more
_TREND = 16  # bars of a rate in a table
_TABS = ("groups", "topics", "brokers")
_COLUMNS = {
    "groups": ("group", "members", "lag", "out/s", "trend", "note"),
    "topics": ("topic", "queues", "messages", "in/s", "trend", "note"),
    "brokers": ("broker", "in/s", "out/s", "disk %", "trend", "address", "version", "note"),
}
_NUMBERS = ("members", "lag", "out/s", "in/s", "queues", "messages", "disk %")
_SORTS = ("name", "rate", "lag")


class TopApp(App[int]):
    """Looks at a cluster every ``interval`` seconds, and shows the tab or group that is open.

    Only what is shown is asked for. Ends with the exit code: 0, or 128 and the number of a signal.

    Args:
        config: how to reach the cluster.
        interval: seconds between two looks; longer if a look costs more than 15 % of a core.
        allowed_groups: patterns of the groups that may be pinned.
    """

    CSS = """
    #summary { height: 1; background: $primary-background; }
    #state { height: 1; color: $text-muted; }
    TabbedContent, ContentSwitcher, TabPane { height: 1fr; }
    TabPane { padding: 0; }
    LiveTable { height: 1fr; }
    """
    BINDINGS = [  # noqa: RUF012 - textual reads the class attribute
        Binding("g", "tab('groups')", "groups"),
        Binding("t", "tab('topics')", "topics"),
        Binding("b", "tab('brokers')", "brokers"),
        Binding("s", "sort", "sort"),
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "interrupt", show=False),
    ]
    ENABLE_COMMAND_PALETTE = False
    TITLE = "rmqtools top"

    def __init__(self, config: ClientConfig, *, interval: float = 2.0, allowed_groups: str = "") -> None:
        super().__init__()
        self._admin = aio.Admin(config)
        self._allowed_groups = allowed_groups
        self._config = config
        self._interval = interval
        self._sampler = Sampler(self._admin, namespace=config.namespace)
        self._rows: dict[str, list[Row]] = {}
        self._sort = "name"
        self._total = Meter()
        self._wake = asyncio.Event()
        self.looks = 0

    def compose(self) -> ComposeResult:
        """Lay out the line about the cluster, the tabs and the line about the last look."""
        yield Static(visible(self._config.name_server), id="summary", markup=False)
        with TabbedContent(initial="groups"):
            for name in _TABS:
                with TabPane(name, id=name):
                    yield LiveTable(_COLUMNS[name], numbers=_NUMBERS, alarms=("note",), id=f"{name}-table")
        yield Static("looking ...", id="state", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look; let signals end the view with the terminal as it was."""
        self.query_one("#groups-table").focus()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit, 128 + number)
        self._look_again()

    @work(exclusive=True, group="looks")
    async def _look_again(self) -> None:
        """Look, then pause, until the view is closed."""
        await self._admin.start()
        while self.is_running:
            started, spent = SYSTEM_CLOCK.monotonic(), _cpu_seconds()
            self._wake.clear()
            await self._look()
            self.looks += 1
            elapsed, cost = SYSTEM_CLOCK.monotonic() - started, _cpu_seconds() - spent
            pause = max(max(self._interval, cost / _SHARE) - elapsed, 0.05)
            self._say_state(elapsed, elapsed + pause)
            await self._pause(pause)

    async def on_unmount(self) -> None:
        """Close the connections, before the loop ends."""
        await self._admin.close()

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return

    async def _look(self) -> None:
        """Ask for what is open, and show it; an error is shown, and the next look tries again."""
        try:
            self._rows["brokers"] = await self._sampler.brokers()
            if self.is_running:  # no widgets are left while the view is being closed
                self._show_summary()
                await self._look_at_group() if self._group else await self._look_at_tab()
        except RocketMQError as error:
            if self.is_running:
                self.notify(str(error), severity="error", title="this look failed", timeout=5)

    async def _look_at_group(self) -> None:
        screen = self._group
        assert screen is not None
        look = await self._sampler.group(screen.group)
        if self.is_running and screen is self._group and screen.is_mounted:
            screen.show(look)

    async def _look_at_tab(self) -> None:
        tab = self._tab
        if tab != "brokers":
            self._rows[tab] = await (self._sampler.topics if tab == "topics" else self._sampler.groups)()
        if self.is_running:
            self._show_tab(tab)

    @property
    def _tab(self) -> str:
        return self.screen_stack[0].query_one(TabbedContent).active or _TABS[0]

    @property
    def _group(self) -> GroupScreen | None:
        """The group that is open, be it behind a question."""
        return next((screen for screen in self.screen_stack if isinstance(screen, GroupScreen)), None)

    def _show_summary(self) -> None:
        rows = self._rows["brokers"]
        into, out = (sum(row.values.get(name) or 0 for row in rows) for name in ("put_tps", "get_tps"))
        self._total.rates.append(into)
        masters = sum(row.values["role"] == "master" for row in rows)
        trend = bars(self._total.rates, _TREND)
        text = (
            f"{self._config.name_server}  {masters} masters  in {short(into)}/s {trend}  out {short(out)}/s"
        )
        wrong = sum(bool(row.note) for row in rows)
        text += f"  {wrong} brokers have a problem" if wrong else ""
        self.screen_stack[0].query_one("#summary", Static).update(visible(text))

    def _show_tab(self, tab: str) -> None:
        rows = sorted(self._rows.get(tab, []), key=self._sort_key)
        table = self.screen_stack[0].query_one(f"#{tab}-table", LiveTable)
        table.show([_LINES[tab](row) for row in rows])

    def _sort_key(self, row: Row) -> tuple[float, str]:
        value = {"rate": row.meter.rate or 0.0, "lag": row.values.get("lag") or 0}.get(self._sort, 0)
        return -value, row.name

    def _say_state(self, elapsed: float, between: float) -> None:
        if not self.is_running:
            return
        count = len(self._rows.get(self._tab, []))
        text = (
            f"{count} {self._tab} by {self._sort}; the last look took {elapsed:.1f} s, every {between:.0f} s"
        )
        self.screen_stack[0].query_one("#state", Static).update(visible(text))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys of the tables out of the other screens."""
        return len(self.screen_stack) == 1 or action not in ("tab", "sort")

    def action_tab(self, name: str) -> None:
        """Open a tab, and look at once."""
        self.query_one(TabbedContent).active = name
        self.query_one(f"#{name}-table").focus()
        self._wake.set()

    def action_interrupt(self) -> None:
        """End as SIGINT does: the terminal sends a key instead of the signal."""
        self.exit(128 + signal.SIGINT)

    def action_sort(self) -> None:
        """Sort by the next of name, rate, lag."""
        self._sort = _SORTS[(_SORTS.index(self._sort) + 1) % len(_SORTS)]
        self._show_tab(self._tab)

    def on_tabbed_content_tab_activated(self) -> None:
        """Look at a tab as soon as it is opened."""
        self._wake.set()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the group under the cursor."""
        if event.data_table.id == "groups-table" and event.row_key.value is not None:
            group = event.row_key.value
            self.push_screen(GroupScreen(group, self._admin, allowed_groups=self._allowed_groups))
            self._wake.set()


def _group_line(row: Row) -> Line:
    values = row.values
    members, lag = values.get("members"), values.get("lag")
    known = [_count(members), _count(lag), short(values.get("rate"))]
    return row.name, [row.name, *known, bars(row.meter.rates, _TREND), row.note]


def _topic_line(row: Row) -> Line:
    values = row.values
    known = [_count(values.get("queues")), _count(values.get("messages")), short(values.get("rate"))]
    return row.name, [row.name, *known, bars(row.meter.rates, _TREND), row.note]


def _broker_line(row: Row) -> Line:
    values = row.values
    known = [short(values.get(name)) for name in ("put_tps", "get_tps", "disk_percent")]
    more: Sequence[str] = (values["addr"], values.get("version") or "-", row.note)
    return row.name, [row.name, *known, bars(row.meter.rates, _TREND), *more]


_LINES: dict[str, Callable[[Row], Line]] = {
    "groups": _group_line,
    "topics": _topic_line,
    "brokers": _broker_line,
}


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system
