"""The Docker cluster: one name server and three masters, and the faults that tests do to them.

``make cluster-up`` and ``make cluster-down`` call this module; the pytest fixtures are in
:mod:`tests.support.docker_fixtures`.
"""

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

from rmqtools import Admin, ClientConfig
from rmqtools.errors import RocketMQError
from tests.support.docker_layout import BROKERS, NAME_SERVER, SERVICES
from tests.support.docker_project import DockerError, DockerProject, last_line, run
from tests.support.patience import PATIENT_REQUEST

_START_SECONDS, _KILL_SECONDS = 240.0, 30.0


class DockerCluster:
    """A running cluster and the faults that tests do to it. Services are ``namesrv`` and the broker names."""

    def __init__(self, project: DockerProject) -> None:
        layout = project.layout
        self.name_server = layout.address(NAME_SERVER)
        self.broker_addrs = {broker: layout.address(broker) for broker in BROKERS}
        self._project = project

    def wait_ready(self, services: Iterable[str] = SERVICES, *, timeout: float = _START_SECONDS) -> None:
        """Wait until the name server answers and each broker is registered and answers.

        The state "Up" of a container proves nothing: a JVM keeps running after an OutOfMemoryError in main.

        Raises:
            DockerError: a container exited meanwhile, or the time is over.
        """
        waiting = list(services)

        def all_answer() -> bool:
            waiting[:] = [service for service in waiting if not self._answers(service)]
            self._check_alive(waiting)
            return not waiting

        wait_until(
            all_answer, timeout, lambda: f"the Docker cluster is not ready: {', '.join(waiting)} silent"
        )

    def kill(self, service: str) -> None:
        """End the server as a power cut would (SIGKILL); its data stays.

        Returns when the container has ended and, if a name server runs, the broker is out of the route.
        """

        def gone() -> bool:
            states = self._project.states()
            if states[service] == "running":
                return False
            return states[NAME_SERVER] != "running" or service not in self._registered()

        self._docker("kill", "--signal", "KILL", service)
        wait_until(gone, _KILL_SECONDS, lambda: f"{service} is killed and still there")

    def start(self, service: str, *, wait: bool = True) -> None:
        """Start a killed server on the data it had.

        ``wait``: until it answers and is registered; for the name server: until all running brokers are.
        """
        self._docker("start", service)
        if wait:
            self.wait_ready(self._affected(service))

    def pause(self, service: str) -> None:
        """Freeze the server: connections stay open without answers; the route keeps it for 2 minutes.

        Again where the kernel needs longer than the container runtime waits for it, on a busy machine.
        """

        def frozen() -> bool:
            try:
                self._docker("pause", service)
            except DockerError as error:
                if "unable to freeze" not in str(error):
                    raise
                return False
            return True

        wait_until(frozen, _KILL_SECONDS, lambda: f"{service} cannot be frozen")

    def unpause(self, service: str, *, wait: bool = True) -> None:
        """Let a paused server go on; ``wait`` as in :meth:`start`."""
        self._docker("unpause", service)
        if wait:
            self.wait_ready(self._affected(service))

    def renew(self, service: str) -> None:
        """Remove a broker's container with all that it has stored, and start a new one."""
        self._docker("rm", "--force", "--volumes", service)
        self._project.up()
        self.wait_ready([service])

    def restore(self) -> None:
        """Undo the remaining faults, and wait until the cluster is in its initial state."""
        for service, state in self._project.states().items():
            if state == "paused":
                self.unpause(service, wait=False)
            elif state != "running":
                self.start(service, wait=False)
        self.wait_ready()

    def _affected(self, service: str) -> list[str]:
        if service != NAME_SERVER:
            return [service]
        return [name for name, state in self._project.states().items() if state == "running"]

    def _answers(self, service: str) -> bool:
        with suppress(RocketMQError, OSError), Admin(ClientConfig(name_server=self.name_server)) as admin:
            registered = admin.fetch_cluster_info().broker_addr_table
            if service == NAME_SERVER:
                return True
            return service in registered and bool(admin.fetch_broker_runtime_info(self.broker_addrs[service]))
        return False

    def _registered(self) -> Collection[str]:
        with Admin(ClientConfig(name_server=self.name_server, request_timeout=PATIENT_REQUEST)) as admin:
            return admin.fetch_cluster_info().broker_addr_table.keys()

    def _check_alive(self, services: Sequence[str]) -> None:
        states = self._project.states()
        for service in services:
            if states.get(service) != "running":
                logs = run("docker", "logs", "--tail", "5", self._project.layout.container(service))
                state = states.get(service, "gone")
                raise DockerError(f"{service} is {state}: {last_line(logs.stdout + logs.stderr)}")

    def _docker(self, command: str, *arguments: str) -> None:
        *options, service = arguments
        result = run("docker", command, *options, self._project.layout.container(service))
        if result.returncode:
            raise DockerError(f"docker {command} {service} failed: {last_line(result.stderr)}")


def wait_until(check: Callable[[], bool], timeout: float, complaint: Callable[[], str]) -> None:
    """Ask again and again.

    Raises:
        DockerError: the time is over.
    """
    deadline = time.monotonic() + timeout
    while not check():
        if time.monotonic() > deadline:
            raise DockerError(f"{complaint()} after {timeout:.0f} s")
        time.sleep(0.2)


def _up(project: DockerProject) -> None:
    with project.in_use():
        project.up()
        DockerCluster(project).wait_ready()
        project.keep_up()
        _status(project)


def _down(project: DockerProject) -> None:
    with project.locked():
        project.down()
        project.release_daemon()


def _status(project: DockerProject) -> None:
    states = project.states()
    for service in SERVICES:
        print(f"{service:9} {project.layout.address(service):22} {states.get(service, 'down')}")


def main(arguments: Sequence[str]) -> int:
    """Run one command; errors are one line and exit code 1."""
    logging.getLogger("rmqtools").addHandler(logging.NullHandler())  # silence while servers start
    project = DockerProject()
    try:
        match list(arguments):
            case ["up"]:
                _up(project)
            case ["down"]:
                _down(project)
            case ["status"]:
                _status(project)
            case ["compose", *rest]:
                return subprocess.run([*project.compose_arguments(), *rest], check=False).returncode
            case _:
                print("usage: python -m tests.support.docker_cluster up | down | status | compose ARGS...")
                return 64
    except DockerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
