"""The compose project of a checkout: daemon, image, confs, containers. Knows no protocol.

A lock in ``.build/docker`` keeps two runs of one checkout apart.
"""

import fcntl
import os
import shlex
import shutil
import socket
import string
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.docker_layout import NAME_SERVER, SERVICES, ClusterLayout

CHECKOUT = Path(__file__).resolve().parents[2]
PUBLIC_IMAGE = "apache/rocketmq:5.5.0"

_HUB_SECONDS, _PULL_SECONDS = 10.0, 600.0


class DockerError(Exception):
    """The cluster is not available; the message is one line for the person who runs the tests."""


class DockerProject:
    """The containers of one checkout, and their configuration."""

    def __init__(self, checkout: Path = CHECKOUT) -> None:
        self.checkout = checkout
        self.layout = ClusterLayout.of(checkout)
        self.compose_file = checkout / "docker" / "compose.yml"
        self._build = checkout / ".build" / "docker"
        self._env_file = self._build / "env"
        self._kept_up = self._build / "kept-up"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other run of this checkout out.

        Raises:
            DockerError: there is one already.
        """
        self._build.mkdir(parents=True, exist_ok=True)
        with (self._build / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise DockerError("another run is using this checkout's Docker cluster") from error
            yield

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Have daemon, image and confs, and nothing left of a killed run; in the end leave nothing.

        Unless the cluster was started by hand and is :meth:`kept up <keep_up>`: then it is used and stays.
        """
        with self.locked():
            try:
                self.ensure_daemon()
                self.prepare()
                if not self.is_kept_up():
                    self.down()
                    self._check_sockets()
                yield
            finally:
                if not self.is_kept_up():
                    self.down()
                self.release_daemon()

    def ensure_daemon(self) -> None:
        """Install and start Docker where it is missing; this process uses it until :meth:`release_daemon`."""
        result = self._daemon_script("ensure")
        if result.returncode:
            lines = result.stderr.strip().splitlines() or ["no Docker: docker/dockerd.sh failed"]
            raise DockerError(lines[-1])

    def release_daemon(self) -> None:
        """Stop the daemon if this run started it and no other process uses it."""
        self._daemon_script("stop")

    def prepare(self) -> None:
        """Choose the image and write the confs and the environment of docker/compose.yml."""
        image = choose_image(self.checkout)
        conf_dir = self._build / "conf"
        conf_dir.mkdir(parents=True, exist_ok=True)
        conf_dir.chmod(0o755)  # read by another user inside the container
        for service in SERVICES:
            path = conf_dir / f"{service}.conf"
            path.write_text(self._render(service))
            path.chmod(0o644)
        values = {"ROCKETMQ_IMAGE": image, "RMQ_CONF_DIR": conf_dir, "RMQ_PROJECT": self.layout.project}
        self._env_file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))

    def compose_command(self) -> str:
        """``docker compose`` where that works, else Debian's ``docker-compose``; with our values."""
        program = "docker-compose"
        if run("docker", "compose", "version").returncode == 0:
            program = "docker compose"
        elif shutil.which(program) is None:
            raise DockerError("no Docker: neither 'docker compose' nor docker-compose is there")
        return f"{program} --env-file {shlex.quote(str(self._env_file))}"

    def compose_arguments(self) -> list[str]:
        """A compose command's beginning, for this project."""
        command = shlex.split(self.compose_command())
        return [*command, "-f", str(self.compose_file), "-p", self.layout.project]

    def up(self) -> None:
        """Start the containers that do not run; does not wait for the servers in them."""
        result = run(*self.compose_arguments(), "up", "-d")
        if result.returncode:
            raise DockerError(f"the Docker cluster does not start: {last_line(result.stderr)}")

    def down(self) -> None:
        """Remove the containers and their data, those of a killed run too."""
        for service in self.states():
            run("docker", "rm", "--force", "--volumes", self.layout.container(service))
        self._kept_up.unlink(missing_ok=True)

    def remove_left_over(self) -> None:
        """Remove what a killed run has left; does nothing while a run of this checkout lives."""
        with suppress(DockerError), self.locked():
            if self.states() and not self.is_kept_up():
                self.down()
            self.release_daemon()

    def states(self) -> dict[str, str]:
        """Service to container state (``running``, ``exited``, ``paused``...), for containers that exist."""
        label = f"label=com.docker.compose.project={self.layout.project}"
        result = run("docker", "ps", "--all", "--filter", label, "--format", "{{.Names}} {{.State}}")
        rows = (line.split() for line in result.stdout.splitlines())
        return {name.removeprefix(f"{self.layout.project}-"): state for name, state in rows}

    def keep_up(self) -> None:
        """Note that the cluster was started by hand: test runs use it and leave it up."""
        self._kept_up.touch()

    def is_kept_up(self) -> bool:
        """Return whether somebody started the cluster by hand and its containers are still there."""
        return self._kept_up.exists() and bool(self.states())

    def _render(self, service: str) -> str:
        conf = self.checkout / "docker" / "conf"
        names = ("namesrv.conf",) if service == NAME_SERVER else ("common.conf", f"{service}.conf")
        text = "".join((conf / name).read_text() for name in names)
        layout = self.layout
        return string.Template(text).substitute(
            name=service,
            host=layout.hosts[service],
            port=layout.ports[service],
            name_server=layout.address(NAME_SERVER),
        )

    def _check_sockets(self) -> None:
        for host, port in self.layout.sockets():
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((host, port))
                except OSError as error:
                    raise DockerError(
                        f"the Docker cluster's address {host}:{port} is taken: {error}"
                    ) from error

    def _daemon_script(self, command: str) -> "subprocess.CompletedProcess[str]":
        return run(str(self.checkout / "docker" / "dockerd.sh"), command, str(os.getpid()))


def choose_image(checkout: Path = CHECKOUT) -> str:
    """The image to run: ROCKETMQ_IMAGE, else one that is there, else the public one, else one built here.

    Whether a hub can be reached is asked for at most 10 s.
    """
    if image := os.environ.get("ROCKETMQ_IMAGE"):
        return image
    local = _build_image(checkout, "--name")
    for image in (PUBLIC_IMAGE, local):
        if run("docker", "image", "inspect", image).returncode == 0:
            return image
    if run("docker", "manifest", "inspect", PUBLIC_IMAGE, timeout=_HUB_SECONDS).returncode == 0:  # noqa: SIM102
        if run("docker", "pull", "--quiet", PUBLIC_IMAGE, timeout=_PULL_SECONDS).returncode == 0:
            return PUBLIC_IMAGE
    print(f"building the image {local}", file=sys.stderr)
    return _build_image(checkout)


def _build_image(checkout: Path, *options: str) -> str:
    script = checkout / "docker" / "build-image.sh"
    result = run(str(script), *options, env={**os.environ, "PYTHON": sys.executable})
    if result.returncode:
        raise DockerError(f"the RocketMQ image cannot be built: {last_line(result.stderr)}")
    return result.stdout.strip()


def run(
    *command: str, timeout: float | None = None, env: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a program; a missing one and one that takes too long are failures like any other."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, env=env)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]
