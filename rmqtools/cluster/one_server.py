"""One server of a cluster that runs: stops it, and starts it again with its messages and its settings."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.file_lock import FileLock
from rmqtools.cluster.processes import find_processes, stop_processes
from rmqtools.cluster.readiness import ReadinessProbe
from rmqtools.cluster.server import BROKER_CLASS, Server, server_environment, spawn, tail
from rmqtools.cluster.state import ClusterState, ServerState, load_state
from rmqtools.config import ClientConfig
from rmqtools.unknown_name import unknown_name


def stop_server(directory: Path, name: str, *, grace: float = 30.0) -> bool:
    """Stop a server as an operator would (SIGTERM), and kill it after ``grace`` seconds; 0: at once.

    Returns:
        Whether it ran.

    Raises:
        ClusterError: there is no cluster in ``directory``, or it has no such server.
    """
    directory = directory.resolve()
    _, server = _find(directory, name)
    return server.pid in stop_processes(directory, grace=grace, only=server.pid)


def start_server(directory: Path, name: str, config: ClientConfig, *, timeout: float = 240.0) -> bool:
    """Start a server that was stopped or has died, and wait until it answers and, a broker, is in the route.

    Args:
        directory: of the cluster.
        name: the server: ``broker-a``.
        config: how to reach the cluster; its ``name_server`` is replaced by the cluster's.
        timeout: seconds until it must answer.

    Returns:
        Whether it had to be started.

    Raises:
        ClusterError: there is no cluster in ``directory``, it has no such server, or that does not start.
    """
    directory = directory.resolve()
    state, _ = _find(directory, name)
    lock = FileLock(directory / "state.lock")
    lock.acquire(wait=True)  # another start at the same time would lose the pid of this one
    try:
        started = _start(directory, name)
    finally:
        lock.release()
    if started is None:
        return False
    _await(directory, started, replace(config, name_server=state.name_server), timeout)
    return True


def _start(directory: Path, name: str) -> ServerState | None:
    """Start a server's process and write its pid into the state; None: it runs already."""
    state, server = _find(directory, name)
    if _runs(directory, server):
        return None
    if not server.command:
        raise ClusterError(f"{name} was started by an older rmqtools: stop the cluster, and start it again")
    variables = server_environment(server.class_path)
    process = spawn(server.command, directory / name, variables, Path(server.output))
    process.returncode = 0  # nobody waits for it: it goes on when this process ends
    started = replace(server, pid=process.pid)
    servers = [started if one.name == name else one for one in state.servers]
    replace(state, servers=servers).persist(directory)
    return started


def _await(directory: Path, server: ServerState, config: ClientConfig, timeout: float) -> None:
    def check() -> None:
        if not _runs(directory, server):
            log = directory / server.name / "server.log"
            raise ClusterError(f"{server.name} ended while starting; the last lines of {log}:\n{tail(log)}")

    probe = ReadinessProbe(config, timeout=timeout, check=check, logs=f"{directory}/{server.name}/server.log")
    with probe:
        if server.name.startswith("broker-"):
            probe.await_brokers([_as_broker(directory, server)])
        elif server.name == "namesrv":
            probe.await_name_server()
        else:
            probe.await_proxy(_as_broker(directory, server))


def _as_broker(directory: Path, server: ServerState) -> Server:
    """Return what the probe needs, with the broker's settings as its file has them."""
    settings = {}
    with suppress(OSError):
        lines = (directory / server.name / "conf" / "server.conf").read_text(encoding="latin-1").splitlines()
        settings = {name: value for name, _, value in (line.partition("=") for line in lines)}
    port = int(server.address.rpartition(":")[2])
    return Server(
        name=server.name,
        port=port,
        directory=directory,
        main_class=BROKER_CLASS,
        memory=(),
        settings=settings,
    )


def _find(directory: Path, name: str) -> tuple[ClusterState, ServerState]:
    state = load_state(directory)
    if state is None:
        raise ClusterError(f"no cluster runs in {directory}: start one with rmqtools cluster up")
    for server in state.servers:
        if server.name == name:
            return state, server
    raise ClusterError(unknown_name("server", name, [server.name for server in state.servers]))


def _runs(directory: Path, server: ServerState) -> bool:
    return server.pid in find_processes(directory)
