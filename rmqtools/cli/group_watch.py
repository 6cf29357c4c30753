"""``rmqtools group watch``: prints a line for each check of a group, until Ctrl-C."""

import json
from dataclasses import dataclass
from threading import Event
from typing import Annotated

import typer

from rmqtools import Admin, ClientConfig
from rmqtools.cli.connection import Json, NameServer, Settings, client_config
from rmqtools.cli.group import Group, known_group, live_pins
from rmqtools.cli.printing import cell_text, ends_quietly, now
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.group import check_group

_LINE = "{:<10}  {:>7}  {:>12}  {:>10}  {:>10}  {}"


def watch(
    group: Group,
    name_server: NameServer = "",
    interval: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Seconds between two looks.")
    ] = 2.0,
    looks: Annotated[int | None, typer.Option(min=1, help="End after this many checks.")] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Print a line for each check of a group, until Ctrl-C: members, lag, rates, findings.

    Rates are those since the look before. With --json, each line is an object.
    """
    with ends_quietly(), Admin(client_config(name_server, settings, ClientConfig)) as admin:
        known_group(admin, group)
        if not as_json:
            print(_LINE.format("TIME (UTC)", "MEMBERS", "LAG", "IN/S", "OUT/S", "FINDINGS"), flush=True)
        before: Look | None = None
        while looks is None or looks > 0:
            look = _look_at(admin, group, before)
            _print_look(look, as_json=as_json)
            before, looks = look, None if looks is None else looks - 1
            if looks != 0:
                Event().wait(interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A group at one moment, for ``watch``; rates are None at the first look."""

    time: str
    members: int
    lag: int
    in_rate: float | None
    out_rate: float | None
    findings: list[str]
    max_offsets: int
    consumer_offsets: int
    moment: float


def _look_at(admin: Admin, group: str, before: Look | None) -> Look:
    view = admin.fetch_group(group)
    moment = SYSTEM_CLOCK.monotonic()
    known = [progress for progress in view.progress.values() if progress.consumer_offset is not None]
    ends = sum(progress.max_offset for progress in known)
    offsets = sum(progress.consumer_offset or 0 for progress in known)
    seconds = moment - before.moment if before else 0.0
    return Look(
        time=f"{now():%H:%M:%S}",
        members=len(view.members),
        lag=ends - offsets,
        in_rate=(ends - before.max_offsets) / seconds if before else None,
        out_rate=(offsets - before.consumer_offsets) / seconds if before else None,
        findings=sorted({found.kind.value for found in check_group(view, live_pins(admin, view))}),
        max_offsets=ends,
        consumer_offsets=offsets,
        moment=moment,
    )


def _print_look(look: Look, *, as_json: bool) -> None:
    if as_json:
        names = ("time", "members", "lag", "in_rate", "out_rate", "findings")
        line = json.dumps({name: getattr(look, name) for name in names})
    else:
        rates = [cell_text(rate) for rate in (look.in_rate, look.out_rate)]
        line = _LINE.format(look.time, look.members, look.lag, *rates, cell_text(look.findings))
    print(line, flush=True)
