"""The servers of one cluster as child processes of this process."""

import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.processes import Watchdog, stop_processes
from rmqtools.cluster.server import NAME_SERVER, Server, spawn, tail
from rmqtools.cluster.state import ClusterState, ServerState

_BOOT_FAILURE = b'Exception in thread "main"'  # other threads may keep the JVM running


class Children:
    """Starts servers, notices dead ones, stops them. The servers end with this process, however it ends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._watchdog = Watchdog(directory)
        self._started: list[tuple[Server, subprocess.Popen[bytes]]] = []
        self._states: list[ServerState] = []

    def start(self, server: Server, java: str, jars: Sequence[Path]) -> None:
        """Start one server, also again after its end. It does not answer yet when this returns.

        Raises:
            ClusterError: its files cannot be written.
        """
        try:
            server.write_conf()
        except OSError as error:
            raise ClusterError(f"{server.home} cannot be used: {error}: give another directory") from error
        self.end(server.name, grace=0)
        process = spawn(server.command(java), server.home, server.variables(jars), server.output)
        self._states = [state for state in self._states if state.name != server.name]
        self._started.append((server, process))
        self._states.append(
            ServerState(
                server.name,
                server.address,
                process.pid,
                str(server.output),
                server.command(java),
                server.class_path(jars),
            )
        )

    def end(self, name: str, *, grace: float) -> bool:
        """Stop one server, which stays in the state: ask it, and kill it after ``grace`` seconds; 0: at once.

        Returns:
            Whether it ran.
        """
        found = [process for server, process in self._started if server.name == name]
        self._started = [started for started in self._started if started[0].name != name]
        was_running = any(process.poll() is None for process in found)
        for process in found:
            if grace > 0:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(grace)
            process.kill()
            process.wait()
        return was_running

    def runs(self, name: str) -> bool:
        """Return whether a server was started and has not ended."""
        return any(server.name == name and process.poll() is None for server, process in self._started)

    def state(self, *, owner: int, detached: bool) -> ClusterState:
        """Return the state of the started servers, to be saved."""
        return ClusterState(owner=owner, detached=detached, servers=[*self._states])

    def refuse_dead(self, names: Collection[str] | None = None) -> None:
        """Raise if one of these servers (None: any) was started, and has ended or cannot start.

        Raises:
            ClusterError: names the server and its log, with the last lines.
        """
        for server, process in self._started:
            if names is not None and server.name not in names:
                continue
            code = process.poll()
            if code is not None:
                raise ClusterError(_obituary(server, f"ended while starting (exit code {code})"))
            if _BOOT_FAILURE in server.output.read_bytes():
                raise ClusterError(_obituary(server, "failed while starting"))

    def stop(self, *, grace: float) -> None:
        """Stop all servers and the watchdog; brokers first, so that they unregister at the name server."""
        if grace > 0:
            self._await_end(grace)
        for _, process in self._started:
            process.kill()
        stop_processes(self._directory, grace=grace)  # started again by start_server, or not noted yet
        for _, process in self._started:
            process.wait()
        self.release()

    def _await_end(self, grace: float) -> None:
        asked = [process for server, process in self._started if server.name != NAME_SERVER]
        for process in asked:
            process.terminate()
        for process in asked:
            try:
                process.wait(grace)
            except subprocess.TimeoutExpired:
                return  # all were asked at the same time, so the others have had their time too

    def release(self) -> None:
        """Let the servers run on without this process."""
        self._watchdog.release()


def _obituary(server: Server, what: str) -> str:
    return (
        f"{server.name} at {server.address} {what}; the last lines of\n"
        f"{server.log}:\n{tail(server.log)}\n{server.output}:\n{tail(server.output)}"
    )
