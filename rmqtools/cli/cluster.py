"""``rmqtools cluster``: a real name server and brokers on this machine."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rmqtools.cli.exit_code import ExitCode
from rmqtools.cli.printing import ends_quietly, print_table, say
from rmqtools.cluster import ClusterSecurity, DownloadProgress, LocalCluster, fetch_status, stop_cluster
from rmqtools.cluster.lock import DEFAULT_VERSION, locked_versions
from rmqtools.cluster.logs import find_log, last_lines
from rmqtools.cluster.logs import follow as follow_log
from rmqtools.cluster.security import FOLDER, USER
from rmqtools.cluster.state import load_state
from rmqtools.errors import ConfigError
from rmqtools.visible_text import visible

_LOG_PAUSE = 0.2  # seconds between checks for new lines of a log
_DOWN_PAUSE = 0.5  # seconds between checks whether the cluster was stopped

app = typer.Typer(
    help="A real RocketMQ cluster on this machine: name server and brokers from the public jars."
)


def _default_directory() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "rmqtools", "cluster")


Directory = Annotated[
    Path,
    typer.Option(
        "--dir",
        metavar="DIRECTORY",
        envvar="RMQTOOLS_CLUSTER_DIR",
        default_factory=_default_directory,
        resolve_path=True,
        show_default="$XDG_STATE_HOME/rmqtools/cluster, ~/.local/state if that is not set",
        help="Where messages, logs and confs are kept; one cluster for each directory.",
    ),
]

TimerWheel = Annotated[bool, typer.Option("--timer-wheel", help="Arbitrary delays; 80 MB per broker.")]
Proxy = Annotated[bool, typer.Option("--proxy", help="A 5.x proxy too; it listens on every address.")]
Slaves = Annotated[
    int,
    typer.Option(min=0, max=9, help="Slaves of each master: broker-a-slave-1, ...; open to all machines."),
]
Secure = Annotated[
    bool, typer.Option("--secure", help="TLS, access keys, and no port that other machines reach.")
]
Version = Annotated[
    str,
    typer.Option(
        "--server-version",
        metavar="VERSION",
        help=f"Version of the servers: {', '.join(locked_versions())}.",
    ),
]
Foreground = Annotated[
    bool, typer.Option("--foreground", help="Return after down; Ctrl-C and SIGTERM stop the cluster.")
]


@app.command()
def up(
    directory: Directory,
    brokers: Annotated[
        int, typer.Option(min=1, max=26, help="Number of masters: broker-a, broker-b, ...")
    ] = 1,
    slaves: Slaves = 0,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of the name server.", show_default="a free one")
    ] = None,
    broker_ports: Annotated[
        str | None,
        typer.Option(
            metavar="PORT,PORT,...",
            help="Ports of the masters, one for each; each takes the ports 2 below and 1 above too.",
            show_default="free ones",
        ),
    ] = None,
    timer_wheel: TimerWheel = False,
    proxy: Proxy = False,
    secure: Secure = False,
    version: Version = DEFAULT_VERSION,
    foreground: Foreground = False,
) -> None:
    """Start a cluster, wait until all brokers answer, and leave it running (down stops it).

    The first start downloads the server's jars (about 95 MB) with Maven, or with the Ivy that PySpark
    contains, into $RMQTOOLS_CACHE_DIR (else $XDG_CACHE_HOME/rmqtools, else ~/.cache/rmqtools).
    """
    with _download_bar() as progress:
        cluster = LocalCluster(
            brokers,
            slaves=slaves,
            directory=directory,
            name_server_port=port,
            broker_ports=None if broker_ports is None else _ports(broker_ports),
            timer_wheel=timer_wheel,
            proxy=proxy,
            security=ClusterSecurity() if secure else None,
            version=version,
            progress=progress,
        )
        cluster.start()
    try:
        _print_status(directory)
        _say_security(cluster, secure=secure)
        if foreground:
            _await_down(directory)  # main() turns a signal into an exception
        else:
            cluster.detach()
    finally:
        cluster.stop()  # does nothing after detach


def _await_down(directory: Path) -> None:
    """Wait until another command has stopped the cluster."""
    pause = Event()
    while load_state(directory) is not None:
        pause.wait(_DOWN_PAUSE)


def _say_security(cluster: LocalCluster, *, secure: bool) -> None:
    """Say how a secured cluster is reached, or which ports of another one other machines reach."""
    if ports := ", ".join(map(str, cluster.exposed_ports)):
        say(f"open to other machines: port {ports}; whoever reaches it reads all messages: use a firewall")
    if secure:
        folder = cluster.directory / FOLDER
        say("TLS and access keys are wanted; commands reach it with:")
        say(f"  export RMQTOOLS_TLS_ENABLE=true RMQTOOLS_TLS_CA_FILE={folder}/ca.pem")
        say(f"  export RMQTOOLS_ACCESS_KEY={USER} RMQTOOLS_SECRET_KEY_FILE={folder}/secret_key")


@app.command()
def status(directory: Directory) -> None:
    """Show the servers of a cluster. Exit code 0: all are up; 3: some are not, or there is no cluster."""
    if not _print_status(directory):
        raise typer.Exit(ExitCode.INCOMPLETE)


@app.command()
def down(directory: Directory) -> None:
    """Stop a cluster, or the servers left of it. Messages are kept. No error if nothing runs."""
    with Console(stderr=True).status("stopping: a broker takes some 10 seconds"):
        stopped = stop_cluster(directory)
    say(f"stopped {len(stopped)} processes of {directory}")


@app.command()
def logs(
    server: Annotated[str, typer.Argument(help="namesrv, broker-a, ..., or proxy.", show_default=False)],
    directory: Directory,
    lines: Annotated[int, typer.Option("--lines", "-l", min=0, help="The last lines to begin with.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more, until Ctrl-C.")] = False,
    jvm: Annotated[
        bool, typer.Option("--jvm", help="The output of its JVM, e.g. why it did not start.")
    ] = False,
) -> None:
    """Print the log of a server, also of one that was stopped."""
    path = find_log(directory, server, jvm=jvm)
    with ends_quietly():
        wait = partial(Event().wait, _LOG_PAUSE)
        for line in follow_log(path, lines, wait) if follow else last_lines(path, lines):
            print(_shown(line), flush=follow)


def _shown(line: str) -> str:
    """Return a line of a log: names that clients choose are in it."""
    return visible(line) if sys.stdout.isatty() else line


def _ports(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"--broker-ports {text!r}: want PORT,PORT,..., e.g. 10911,10921")
    return [int(part) for part in parts]


@contextmanager
def _download_bar() -> Iterator[DownloadProgress]:
    """Show a bar on standard error as soon as a download has begun."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("server jars", total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def _print_status(directory: Path) -> bool:
    """Print the table; return whether all servers are up."""
    servers = fetch_status(directory)
    if not servers:
        say(f"no cluster in {directory}")
        return False
    columns = ("server", "address", "pid", "alive")
    print_table(columns, [(server.name, server.address, server.pid, server.alive) for server in servers])
    say(f"name server: {servers[0].address}")
    if servers[-1].name == "proxy":
        port = servers[-1].address.rpartition(":")[2]
        say(f"proxy: {servers[-1].address} (listens on every address of this machine, port {port})")
    return all(server.alive for server in servers)
