"""The live view: tables of groups, topics and brokers that renew themselves."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widgets import DataTable, Footer, Input, OptionList, Static, TabbedContent, TabPane

from rmqtools import ClientConfig, aio
from rmqtools.cli.moments import clock_text
from rmqtools.cli.printing import Column, now
from rmqtools.cli.top.findings_list import FindingsList
from rmqtools.cli.top.group_screen import GroupScreen
from rmqtools.cli.top.help_screen import HelpScreen
from rmqtools.cli.top.live_table import Line, LiveTable
from rmqtools.cli.top.rates import Meter, bars, short
from rmqtools.cli.top.sampler import Row, Sampler
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import RocketMQError
from rmqtools.number_of import number_of
from rmqtools.visible_text import visible

_SHARE = 0.15  # of one core that the view may take; it looks less often where a look costs more
_TREND, _WIDE_TREND = 16, 48  # bars of a rate in a table
_WIDE = 110  # columns of a terminal
_TABS = ("findings", "groups", "topics", "brokers")
_COLUMNS = {  # what leaves a narrow terminal has the higher number
    "groups": (
        *(Column("group"), Column("members", 3), Column("lag"), Column("dead", 2), Column("out/s", 1)),
        *(Column("note"), Column("trend", 4)),
    ),
    "topics": (
        *(Column("topic"), Column("queues", 2), Column("messages", 1), Column("in/s"), Column("note")),
        Column("trend", 3),
    ),
    "brokers": (
        *(Column("broker"), Column("in/s", 2), Column("out/s", 3), Column("disk %"), Column("wait ms", 1)),
        *(Column("note"), Column("trend", 6), Column("address", 4), Column("version", 5)),
    ),
}
_NUMBERS = ("members", "lag", "dead", "out/s", "in/s", "queues", "messages", "disk %", "wait ms")
_SORTS = ("name", "rate", "lag")


class TopApp(App[int]):
    """Looks at a cluster every ``interval`` seconds, and shows the tab or group that is open.

    Only what is shown is asked for. Returns the number of the signal that ended it, or nothing.

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
    LiveTable, FindingsList { height: 1fr; border: none; padding: 0; }
    FindingsList > .option-list--option-highlighted, FindingsList:focus > .option-list--option-highlighted {
        background: $primary 30%; color: $foreground; text-style: none; }
    #filter { height: 1; border: none; padding: 0 1; display: none; }
    """
    BINDINGS = [  # noqa: RUF012 - textual reads the class attribute
        Binding("q", "quit", "quit"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("s", "sort", "sort"),
        Binding("f", "tab('findings')", "findings"),
        Binding("g", "tab('groups')", "groups"),
        Binding("t", "tab('topics')", "topics"),
        Binding("b", "tab('brokers')", "brokers"),
        Binding("escape", "unfilter", show=False),
        Binding("ctrl+c", "interrupt", show=False),
    ]
    ENABLE_COMMAND_PALETTE = False
    TITLE = "rmqtools top"

    def __init__(self, config: ClientConfig, *, interval: float = 2.0, allowed_groups: str = "") -> None:
        super().__init__()
        self._client = aio.Client(config)
        self._admin = aio.Admin(self._client)
        self._allowed_groups = allowed_groups
        self._config = config
        self._interval = interval
        self._sampler = Sampler(self._client)
        self._rows: dict[str, list[Row]] = {}
        self._sort = "name"
        self._total = Meter()
        self._wake = asyncio.Event()
        self._filter = ""
        self._good_look = ""
        self._error = ""
        self.looks = 0

    def compose(self) -> ComposeResult:
        """Lay out the line about the cluster, the tabs and the line about the last look."""
        yield Static(visible(self._config.name_server), id="summary", markup=False)
        with TabbedContent(initial="findings"):
            with TabPane("findings", id="findings"):
                yield FindingsList(id="findings-table")
            for name, columns in _COLUMNS.items():
                with TabPane(name, id=name):
                    yield LiveTable(columns, numbers=_NUMBERS, alarms=("note",), id=f"{name}-table")
        yield Input(placeholder="part of a name; Enter keeps it, Escape shows all", id="filter")
        yield Static("looking ...", id="state", markup=False)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Begin to look; let signals end the view with the terminal as it was."""
        self.query_one("#findings-table").focus()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit, number)
        self._look_again()

    @work(exclusive=True, group="looks")
    async def _look_again(self) -> None:
        """Look, then pause, until the view is closed."""
        await self._client.start()
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
        await self._client.close()

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return

    async def _look(self) -> None:
        """Ask for what is open, and show it; after an error what is shown is old, until the next look."""
        self._sampler.begin()
        try:
            self._rows["brokers"] = await self._sampler.brokers()
            if self.is_running:  # no widgets are left while the view is being closed
                self._show_summary()
                await self._look_at_group() if self._group else await self._look_at_tab()
            self._good_look, self._error = clock_text(now()), ""
        except RocketMQError as error:
            self._error = str(error)
            if self.is_running:
                self._show_summary()
                self._show_tab(self._tab)
                self.notify(str(error), severity="error", title="this look failed", timeout=5)

    async def _look_at_group(self) -> None:
        screen = self._group
        assert screen is not None
        look = await self._sampler.group(screen.group)
        if self.is_running and screen is self._group and screen.is_mounted:
            screen.show(look)

    async def _look_at_tab(self) -> None:
        tab = self._tab
        if tab == "topics":
            self._rows["topics"] = await self._sampler.topics()
        elif tab != "brokers":
            self._rows["groups"] = await self._sampler.groups()
        self._error = ""
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
        rows = self._rows.get("brokers", [])
        into, out = (sum(row.values.get(name) or 0 for row in rows) for name in ("put_tps", "get_tps"))
        if not self._error:
            self._total.rates.append(into)
        masters = sum(row.values.get("role") == "master" for row in rows)
        trend = bars(self._total.rates, _TREND if self.size.width >= _WIDE else _TREND // 2)
        text = f"{self._config.name_server}  {masters} masters"
        if self._error:
            text += f"  STALE: as of {self._good_look or 'never'}"
        else:
            text += f"  in {short(into)}/s {trend}  out {short(out)}/s"
        wrong = sum(not one.group for one in self._sampler.problems)
        text += f"  {number_of(wrong, 'broker finding')}" if wrong else ""
        self.screen_stack[0].query_one("#summary", Static).update(visible(text))

    def _show_tab(self, tab: str) -> None:
        stale = bool(self._error)
        if tab == "findings":
            found = [one for one in self._sampler.problems if self._filter in one.name.lower()]
            nothing = f"nothing found in {number_of(len(self._rows.get('groups', [])), 'group')}"
            shown = self.screen_stack[0].query_one("#findings-table", FindingsList)
            shown.show(found, nothing=nothing if not stale else "nothing is known", stale=stale)
            return
        rows = sorted(self._shown_rows(tab), key=self._sort_key)
        table = self.screen_stack[0].query_one(f"#{tab}-table", LiveTable)
        trend = _WIDE_TREND if self.size.width >= _WIDE else _TREND
        table.show([_LINES[tab](row, trend, stale) for row in rows], stale=stale)

    def _shown_rows(self, tab: str) -> list[Row]:
        return [row for row in self._rows.get(tab, []) if self._filter in row.name.lower()]

    def _sort_key(self, row: Row) -> tuple[float, str]:
        value = {"rate": row.meter.rate or 0.0, "lag": row.values.get("lag") or 0}.get(self._sort, 0)
        return -value, row.name

    def _say_state(self, elapsed: float, between: float) -> None:
        if not self.is_running:
            return
        tab = self._tab
        rows = self._sampler.problems if tab == "findings" else self._shown_rows(tab)
        count = number_of(len(rows), tab.removesuffix("s"))
        order = "worst first" if tab == "findings" else f"by {self._sort}"
        text = f"{count} {order}; the last look took {elapsed:.1f} s, every {between:.0f} s"
        if self._filter:
            text = f"only {self._filter!r}: {text}"
        if self._error:
            text = f"old, as of {self._good_look or 'never'}: {self._error}"
        self.screen_stack[0].query_one("#state", Static).update(visible(text))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys of the tables out of the other screens."""
        return len(self.screen_stack) == 1 or action not in ("tab", "sort", "filter", "unfilter", "help")

    def action_tab(self, name: str) -> None:
        """Open a tab, and look at once."""
        self.query_one(TabbedContent).active = name
        self.query_one(f"#{name}-table").focus()
        self._wake.set()

    def action_interrupt(self) -> None:
        """End as SIGINT does: the terminal sends a key instead of the signal."""
        self.exit(signal.SIGINT)

    def action_sort(self) -> None:
        """Sort by the next of name, rate, lag."""
        self._sort = _SORTS[(_SORTS.index(self._sort) + 1) % len(_SORTS)]
        self._show_tab(self._tab)

    def action_filter(self) -> None:
        """Ask for a part of the names to show."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def action_unfilter(self) -> None:
        """Show all names again."""
        self.query_one("#filter", Input).value = ""
        self._leave_filter()

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(HelpScreen())

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types."""
        self._filter = event.value.strip().lower()
        self._show_tab(self._tab)

    def on_input_submitted(self) -> None:
        """Keep the filter, and go back to the table."""
        self._leave_filter()

    def _leave_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = bool(field.value)
        self.query_one(f"#{self._tab}-table").focus()

    def on_resize(self) -> None:
        """Use the new width."""
        if self._rows:
            self._show_tab(self._tab)

    def on_tabbed_content_tab_activated(self) -> None:
        """Look at a tab as soon as it is opened."""
        self._wake.set()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the group under the cursor."""
        if event.data_table.id == "groups-table" and event.row_key.value is not None:
            self._open(event.row_key.value)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the group of the finding under the cursor."""
        if isinstance(event.option_list, FindingsList) and event.option_list.group:
            self._open(event.option_list.group)

    def _open(self, group: str) -> None:
        self.push_screen(GroupScreen(group, self._admin, allowed_groups=self._allowed_groups))
        self._wake.set()


def _group_line(row: Row, trend: int, stale: bool) -> Line:
    values = row.values
    known = [_count(values.get(name)) for name in ("members", "lag", "dead")]
    rate = None if stale else values.get("rate")
    return row.name, [row.name, *known, short(rate), row.note, bars(row.meter.rates, trend)]


def _topic_line(row: Row, trend: int, stale: bool) -> Line:
    values = row.values
    known = [_count(values.get("queues")), _count(values.get("messages"))]
    rate = None if stale else values.get("rate")
    return row.name, [row.name, *known, short(rate), row.note, bars(row.meter.rates, trend)]


def _broker_line(row: Row, trend: int, stale: bool) -> Line:
    values = row.values
    rates = [short(None if stale else values.get(name)) for name in ("put_tps", "get_tps")]
    known = [short(values.get(name)) for name in ("disk_percent", "page_cache_wait_ms")]
    more: Sequence[str] = (bars(row.meter.rates, trend), values["addr"], values.get("version") or "-")
    return row.name, [row.name, *rates, *known, row.note, *more]


_LINES: dict[str, Callable[[Row, int, bool], Line]] = {
    "groups": _group_line,
    "topics": _topic_line,
    "brokers": _broker_line,
}


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system
