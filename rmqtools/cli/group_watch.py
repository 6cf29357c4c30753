"""``rmqtools group watch``: prints a line for each check of a group, until Ctrl-C."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from rmqtools import Admin, Client, ClientConfig, MessageQueue
from rmqtools.cli.connection import Json, NameServer, Settings, client_config
from rmqtools.cli.group import Group, require_group
from rmqtools.cli.moments import duration_option, zone_text, zoned
from rmqtools.cli.printing import cell_text, ends_quietly, now
from rmqtools.cli.saving.picture import check_picture, save_picture
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.plot import lag_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINE = "{:<13}  {:>7}  {:>9}  {:>8}  {:>8}  {}"


def watch(
    group: Group,
    name_server: NameServer = "",
    interval: Annotated[float, duration_option("Time between two looks.", least=0.1)] = 2.0,
    looks: Annotated[int | None, typer.Option(min=1, help="End after this many checks.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Save the lag over time at the end: .svg, .png or .pdf (extra plot)."
        ),
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Print a line for each check of a group, until Ctrl-C: members, lag, rates, findings.

    Rates are those since the look before, of queues that both looks know. With --json, each line is an
    object.
    """
    check_picture(plot)
    seen: list[Look] = []
    with ends_quietly(), Client(client_config(name_server, settings, ClientConfig)) as client:
        require_group(Admin(client, partial=True), group)
        if not as_json:
            print(
                _LINE.format(f"TIME ({zone_text()})", "MEMBERS", "LAG", "IN/S", "OUT/S", "FINDINGS"),
                flush=True,
            )
        try:
            for look in _looks(client, group, looks, interval):
                _print_look(look, as_json=as_json)
                seen = [*seen, look] if plot is not None else []
        finally:  # Ctrl-C is the usual end
            if plot is not None and seen:
                save_picture(plot, lambda: _figure(group, seen))


def _looks(client: Client, group: str, count: int | None, interval: float) -> Iterator["Look"]:
    """Look ``count`` times, or until the process is interrupted; each look asks every broker again."""
    before: Look | None = None
    while count is None or count > 0:
        before = _look_at(Admin(client, partial=True), group, before)
        yield before
        count = None if count is None else count - 1
        if count != 0:
            Event().wait(interval)


def _figure(group: str, seen: Sequence["Look"]) -> "Figure":
    """Return the lag of each topic over time."""
    topics = sorted({topic for look in seen for topic in look.lags})
    lags = {topic: [look.lags.get(topic) for look in seen] for topic in topics}
    return lag_figure([look.at for look in seen], lags, title=f"lag of group {group}: {', '.join(topics)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A group at one moment, for ``watch``; rates are None at the first look."""

    time: str
    members: int
    lag: int
    in_rate: float | None
    out_rate: float | None
    findings: list[str]
    max_offsets: Mapping[MessageQueue, int]
    consumer_offsets: Mapping[MessageQueue, int]
    moment: float
    at: datetime
    lags: Mapping[str, int]


def _look_at(admin: Admin, group: str, before: Look | None) -> Look:
    check = admin.check_group(group)
    view = check.view
    moment = SYSTEM_CLOCK.monotonic()
    ends = {queue: progress.max_offset for queue, progress in view.progress.items()}
    offsets = {
        queue: progress.consumer_offset
        for queue, progress in view.progress.items()
        if progress.consumer_offset is not None
    }
    seconds = moment - before.moment if before else 0.0
    lags: Counter[str] = Counter()
    for queue, progress in view.progress.items():
        lags[queue.topic] += progress.lag
    at = now()
    return Look(
        time=f"{zoned(at):%H:%M:%S}",
        at=at,
        lags=lags,
        members=len(view.members),
        lag=lags.total(),
        in_rate=_grown(before.max_offsets, ends) / seconds if before else None,
        out_rate=_grown(before.consumer_offsets, offsets) / seconds if before else None,
        findings=sorted({found.kind.value for found in check.findings}),
        max_offsets=ends,
        consumer_offsets=offsets,
        moment=moment,
    )


def _grown(before: Mapping[MessageQueue, int], now: Mapping[MessageQueue, int]) -> int:
    """Return how much the offsets have grown; a queue that only one look knows makes no spike."""
    return sum(offset - before[queue] for queue, offset in now.items() if queue in before)


def _print_look(look: Look, *, as_json: bool) -> None:
    if as_json:
        names = ("time", "members", "lag", "in_rate", "out_rate", "findings")
        line = json.dumps({name: getattr(look, name) for name in names})
    else:
        rates = [cell_text(rate) for rate in (look.in_rate, look.out_rate)]
        line = _LINE.format(look.time, look.members, look.lag, *rates, cell_text(look.findings))
    print(line, flush=True)
