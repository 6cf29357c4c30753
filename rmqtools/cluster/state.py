"""The saved state of a cluster: ``state.json`` in its directory."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.processes import find_processes
from rmqtools.safe_file import PRIVATE, replace_text

_NAME = "state.json"


@dataclass(frozen=True, slots=True)
class ServerState:
    """One server as it was started."""

    name: str
    address: str
    pid: int
    output: str  # path of its log
    command: Sequence[str] = ()  # to start it again; older versions did not write it
    class_path: str = ""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster: the process that started it, whether it runs on without that process, its servers."""

    owner: int  # pid
    detached: bool
    servers: Sequence[ServerState]

    @property
    def name_server(self) -> str:
        """``host:port`` of the name server, which is always first."""
        return self.servers[0].address

    def persist(self, directory: Path) -> None:
        """Write the file in one step: readers see the old state or the new one."""
        replace_text(directory / _NAME, json.dumps(asdict(self), indent=1) + "\n", mode=PRIVATE)


def load_state(directory: Path) -> ClusterState | None:
    """Return the saved state; None if no cluster was started here, or it was stopped.

    Raises:
        ClusterError: the file is not one of ours.
    """
    path = directory / _NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        servers = [
            ServerState(**{**server, "command": tuple(server.get("command", ()))})
            for server in data.pop("servers")
        ]
        return ClusterState(**data, servers=servers)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ClusterError(
            f"{path} is damaged ({error}): run 'down' on {directory}, which removes it"
        ) from error


def remove_state(directory: Path) -> None:
    """Remove the state file; the cluster's data stay."""
    (directory / _NAME).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server as it is now."""

    name: str
    address: str
    pid: int
    alive: bool


def fetch_status(directory: Path) -> list[ServerStatus]:
    """Return every server that should be running in ``directory``; empty if there is no cluster."""
    directory = directory.resolve()
    state = load_state(directory)
    living = set(find_processes(directory)) if state else set()
    return [
        ServerStatus(server.name, server.address, server.pid, server.pid in living)
        for server in (state.servers if state else ())
    ]
