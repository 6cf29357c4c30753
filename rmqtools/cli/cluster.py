"""``rmqtools cluster``: a real name server and brokers on this machine."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rmqtools.cluster import DownloadProgress, LocalCluster, fetch_status, stop_cluster

NOT_ALL_UP = 3  # exit code of status

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
        envvar="RMQTOOLS_CLUSTER_DIR",
        default_factory=_default_directory,
        resolve_path=True,
        show_default="$XDG_STATE_HOME/rmqtools/cluster, ~/.local/state if that is not set",
        help="Where messages, logs and confs are kept; one cluster for each directory.",
    ),
]


@app.command()
def up(
    directory: Directory,
    brokers: Annotated[
        int, typer.Option(min=1, max=26, help="How many masters: broker-a, broker-b, ...")
    ] = 1,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Of the name server.", show_default="a free one")
    ] = None,
    timer_wheel: Annotated[
        bool, typer.Option("--timer-wheel", help="Arbitrary delays; 80 MB per broker.")
    ] = False,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay; stop the cluster at Ctrl-C or SIGTERM.")
    ] = False,
) -> None:
    """Start a cluster, wait until all brokers answer, leave it running (down stops it).

    The first start downloads the server's jars (some 95 MB) with Maven, or with the Ivy that PySpark
    ships, into $RMQTOOLS_CACHE_DIR (else $XDG_CACHE_HOME/rmqtools, ~/.cache/rmqtools).
    """
    with _download_bar() as progress:
        cluster = LocalCluster(
            brokers,
            directory=directory,
            name_server_port=port,
            timer_wheel=timer_wheel,
            progress=progress,
        )
        cluster.start()
    try:
        _print_status(directory)
        if foreground:
            signal.pause()  # main() turns the signal into an exception
        cluster.detach()
    finally:
        cluster.stop()  # once it is detached, this does nothing


@app.command()
def status(directory: Directory) -> None:
    """Show the servers of a cluster; exit code 0: all are up, 3: some are not, or there is no cluster."""
    if not _print_status(directory):
        raise typer.Exit(NOT_ALL_UP)


@app.command()
def down(directory: Directory) -> None:
    """Stop a cluster, or what is left of it; messages stay. Nothing to stop is no error."""
    with Console(stderr=True).status("stopping: a broker takes some 10 seconds"):
        stopped = stop_cluster(directory)
    Console().print(f"stopped {len(stopped)} processes of {directory}", soft_wrap=True, highlight=False)


@contextmanager
def _download_bar() -> Iterator[DownloadProgress]:
    """Show a bar on standard error from the first news of a download."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("server jars", total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def _print_status(directory: Path) -> bool:
    """Print the table; return whether all servers are up."""
    servers = fetch_status(directory)
    console = Console(soft_wrap=True, highlight=False)
    if not servers:
        console.print(f"no cluster in {directory}")
        return False
    table = Table("server", "address", "pid", "alive")
    for server in servers:
        table.add_row(server.name, server.address, str(server.pid), "yes" if server.alive else "no")
    console.print(table)
    console.print(f"name server: {servers[0].address}")
    return all(server.alive for server in servers)
