"""The servers of one cluster as child processes of this process."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.processes import Watchdog, stop_processes
from rmqtools.cluster.server import Server, tail
from rmqtools.cluster.state import ClusterState, ServerState

_BOOT_FAILURE = b'Exception in thread "main"'  # the JVM may live on in its other threads


class Children:
    """Start servers, notice dead ones, stop them. Whatever ends this process ends them too."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._watchdog = Watchdog(directory)
        self._started: list[tuple[Server, subprocess.Popen[bytes]]] = []

    def start(self, server: Server, java: str, jars: Sequence[Path]) -> None:
        """Start one server; it does not answer yet when this returns."""
        server.write_conf()
        with server.output.open("wb") as output:
            process = subprocess.Popen(
                server.command(java),
                cwd=server.home,
                env=server.variables(jars),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a terminal's Ctrl-C is for us; we stop the servers
            )
        self._started.append((server, process))

    def state(self, *, owner: int, detached: bool) -> ClusterState:
        """Return what is to be written down about the servers that were started."""
        servers = [
            ServerState(server.name, server.address, process.pid, str(server.output))
            for server, process in self._started
        ]
        return ClusterState(owner=owner, detached=detached, servers=servers)

    def refuse_dead(self) -> None:
        """Raise if a server has ended, or will never come up.

        Raises:
            ClusterError: names the server, its log and the last lines of it.
        """
        for server, process in self._started:
            code = process.poll()
            if code is not None:
                raise ClusterError(_obituary(server, f"ended while starting (exit code {code})"))
            if _BOOT_FAILURE in server.output.read_bytes():
                raise ClusterError(_obituary(server, "failed while starting"))

    def stop(self, *, grace: float) -> None:
        """Stop all servers, brokers first (they take leave of the name server), and the watchdog."""
        if grace > 0:
            for _, process in self._started[1:]:
                process.terminate()
            self._await_end(grace)
        for _, process in self._started:
            process.kill()
        stop_processes(self._directory, grace=0)  # one that was started but not yet noted down
        for _, process in self._started:
            process.wait()
        self.release()

    def _await_end(self, grace: float) -> None:
        for _, process in self._started[1:]:
            try:
                process.wait(grace)
            except subprocess.TimeoutExpired:
                return  # all were asked at the same time: the others have had theirs

    def release(self) -> None:
        """Let the servers live on without this process."""
        self._watchdog.release()


def _obituary(server: Server, what: str) -> str:
    return (
        f"{server.name} at {server.address} {what}; the last lines of\n"
        f"{server.log}:\n{tail(server.log)}\n{server.output}:\n{tail(server.output)}"
    )
