"""``rmqtools broker`` and ``rmqtools health``: the state of brokers, their settings, one line for a probe."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from rmqtools import Admin, ClientConfig
from rmqtools.broker import BrokerState, broker_note
from rmqtools.cli.change import DryRun, Yes, agreed
from rmqtools.cli.connection import Json, NameServer, Settings, client_config, end_incomplete
from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.findings import Ignore, MinSeverity, counted, finding_values, left_out
from rmqtools.cli.moments import duration_option
from rmqtools.cli.pairs import pairs
from rmqtools.cli.printing import Column, finding, print_json, print_table, say, warning
from rmqtools.errors import ConfigError, RocketMQError
from rmqtools.group import Severity
from rmqtools.number_of import number_of
from rmqtools.unknown_name import unknown_name

_NEARLY_FULL = 85  # percent of the disk

app = typer.Typer(no_args_is_help=True, help="Brokers: their state and their settings.")

Broker = Annotated[str, typer.Argument(help="The broker's name, or its address.", show_default=False)]


@app.command()
def status(name_server: NameServer = "", settings: Settings = None, as_json: Json = False) -> None:
    """Show every broker: version, role, messages in and out a second, disk, waits, lengths of queues.

    "put p99" and "page cache wait" (how long the commit log is locked) are milliseconds, "send queue" is the
    number of requests that wait. A broker is read-only after drain, or by its brokerPermission.
    """
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        brokers = admin.fetch_brokers()
    rows = [broker_values(broker) for broker in brokers]
    print_json(rows) if as_json else _print_brokers(rows)
    end_incomplete({f"broker {one.broker_name}": one.error for one in brokers if one.error is not None})


def _print_brokers(rows: Sequence[Mapping[str, Any]]) -> None:
    columns = [
        Column("broker"),
        Column("role"),
        Column("address", 2),
        Column("version", 3),
        Column("put/s"),
        Column("get/s"),
        Column("put p99", 4),
        Column("disk %", 1, lambda value: "bold red" if (value or 0) >= _NEARLY_FULL else ""),
        Column("page cache wait", 6, warning),
        Column("send queue", 5, warning),
        Column("note", style=finding),
    ]
    names = ("broker_name", "role", "addr", "version", "put_tps", "get_tps", "put_latency_p99_ms")
    more = ("disk_percent", "page_cache_wait_ms", "send_queue", "note")
    print_table(columns, [tuple(row.get(name) for name in (*names, *more)) for row in rows])


@app.command()
def config(
    broker: Broker,
    changes: Annotated[
        list[str] | None,
        typer.Option("--change", "-c", metavar="NAME=VALUE", help="Change a setting; several times."),
    ] = None,
    name_server: NameServer = "",
    match: Annotated[str, typer.Option(metavar="TEXT", help="Only names that contain this.")] = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show a broker's settings; or change some, after showing the difference.

    Changes are stored in the broker's file; some take effect at its next start only.
    """
    wanted = pairs(changes)
    with Admin(client_config(name_server, settings, ClientConfig)) as admin:
        addr = _addr(admin, broker)
        known = admin.fetch_broker_config(addr)
        if not wanted:
            shown = {name: known[name] for name in sorted(known) if match.lower() in name.lower()}
            _print_config(shown, as_json=as_json)
            return
        for name in wanted:
            if name not in known:
                raise ConfigError(unknown_name("setting of a broker", name, list(known)))
        changed = {name: value for name, value in wanted.items() if known[name] != value}
        rows = [{"setting": name, "before": known[name], "after": value} for name, value in changed.items()]
        if as_json:
            print_json(rows)
        elif rows:
            print_table(["setting", "before", "after"], [tuple(row.values()) for row in rows])
        else:
            say(f"{addr} has these settings already")
        question = f"Change {len(changed)} settings of {addr}?"
        if not changed or not agreed(question, yes=yes, dry_run=dry_run):
            return
        admin.update_broker_config(addr, changed)
        now = admin.fetch_broker_config(addr)
    for name, value in changed.items():
        if now.get(name) != value:
            raise RocketMQError(f"{addr} did not take {name}={value}: it says {now.get(name)}")
    if not as_json:
        say(f"{addr} is changed: {', '.join(f'{name}={value}' for name, value in changed.items())}")


def health(
    name_server: NameServer = "",
    brokers: Annotated[
        int | None, typer.Option(min=1, help="Minimum number of masters. Default: one.")
    ] = None,
    timeout: Annotated[
        float, duration_option("For all questions; what is silent then is named.", least=0.1)
    ] = 10.0,
    min_severity: MinSeverity = Severity.WARNING,
    ignore: Ignore = None,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print nothing while it is healthy: for cron, which mails the rest."),
    ] = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Print one line, for probes: whether all name servers and all brokers that they know are well.

    Exit code 0: healthy; 1: something is wrong, which the line says; 3: no name server answers.
    """
    config = client_config(name_server, settings, ClientConfig)
    with Admin(config) as admin:
        check = admin.check_cluster(timeout=timeout)
    masters = sum(broker.broker_id == 0 and broker.error is None for broker in check.brokers)
    found = counted(check.findings, min_severity, ignore)
    wrong = [finding.text for finding in found]
    if masters < (brokers or 1):
        wrong.append(f"{masters} masters answer, want {brokers or 1}")
    if as_json and (wrong or not quiet):
        counts = {"brokers": len(check.brokers), "masters": masters, "name_servers": len(check.name_servers)}
        print_json(
            {
                "healthy": not wrong,
                **counts,
                "wrong": wrong,
                "findings": [finding_values(one) for one in found],
            }
        )
    elif wrong or not quiet:
        known = f"{number_of(len(check.brokers), 'broker')}, {number_of(masters, 'master')}"
        well = f"healthy: {known}{left_out(check.findings, found)}"
        say(f"unhealthy: {'; '.join(wrong)}" if wrong else well)
    if wrong:
        raise typer.Exit(ExitCode.NO)


def broker_values(broker: BrokerState) -> dict[str, Any]:
    """Return a broker as a row; without an answer it has no numbers."""
    row: dict[str, Any] = {
        "broker_name": broker.broker_name,
        "cluster": broker.cluster,
        "role": broker.role,
        "addr": broker.addr,
        "read_only": broker.is_read_only,
    }
    if broker.error is None:
        row |= {
            "version": broker.statistics.get("brokerVersionDesc"),
            "put_tps": broker.number("putTps"),
            "get_tps": broker.number("getTransferredTps"),
            "put_latency_p99_ms": broker.number("putLatency99"),
            "disk_percent": None if broker.disk is None else round(broker.disk * 100, 1),
            "page_cache_wait_ms": broker.number("pageCacheLockTimeMills"),
            "send_queue": broker.number("sendThreadPoolQueueSize"),
            "send_queue_wait_ms": broker.number("sendThreadPoolQueueHeadWaitTimeMills"),
            "boot_timestamp_ms": broker.number("bootTimestamp"),
        }
    return row | {"note": broker_note(broker)}


def _addr(admin: Admin, broker: str) -> str:
    """Return the address of a broker's master, by its name or its address."""
    table = admin.fetch_cluster_info().broker_addr_table
    if broker in table and 0 in table[broker].broker_addrs:
        return table[broker].broker_addrs[0]
    if broker in table:
        raise RocketMQError(f"broker {broker!r} has no master now: give the address of a slave")
    if any(broker in data.broker_addrs.values() for data in table.values()):
        return broker
    raise ConfigError(unknown_name("broker", broker, list(table)))


def _print_config(settings: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json(settings)
        return
    print_table(["setting", "value"], list(settings.items()))
