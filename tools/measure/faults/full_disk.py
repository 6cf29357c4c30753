"""One more broker of the Docker cluster, whose disk is 100 MB of memory."""

import string
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rmqtools import Admin, ClientConfig
from rmqtools.errors import RocketMQError
from tests.support.docker_cluster import wait_until
from tests.support.docker_layout import NAME_SERVER
from tests.support.docker_project import DockerError, DockerProject, choose_image, last_line, run

NAME = "broker-full"
DISK = "100m"
_START_SECONDS = 120.0
_JAVA = (
    "exec java -Xms96m -Xmx96m -XX:MaxDirectMemorySize=192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
    '-Dtls.server.mode=disabled -cp "$ROCKETMQ_HOME/conf:$ROCKETMQ_HOME/lib/*" '
    f"org.apache.rocketmq.broker.BrokerStartup -c /conf/{NAME}.conf"
)
_STORE = "storePathRootDir=/store\nstorePathCommitLog=/store/commitlog\nmappedFileSizeCommitLog=16777216\n"


@contextmanager
def full_disk_broker(project: DockerProject) -> Iterator[None]:
    """Start the broker, wait until it is registered; remove it at the end.

    Raises:
        DockerError: it does not start.
    """
    container = project.layout.container(NAME)
    conf_dir = project.checkout / ".build" / "docker" / "conf"
    (conf_dir / f"{NAME}.conf").write_text(_conf(project))
    (conf_dir / f"{NAME}.conf").chmod(0o644)
    result = run(
        *("docker", "run", "--detach", "--name", container, "--network", "host", "--hostname", "rocketmq"),
        *("--add-host", "rocketmq:127.0.0.1", "--tmpfs", f"/store:size={DISK},mode=1777"),
        *("--volume", f"{conf_dir}:/conf:ro", choose_image(project.checkout), "sh", "-c", _JAVA),
    )
    try:
        if result.returncode:
            raise DockerError(f"{NAME} does not start: {last_line(result.stderr)}")
        name_server = project.layout.address(NAME_SERVER)
        wait_until(lambda: _is_registered(name_server), _START_SECONDS, lambda: f"{NAME} is not registered")
        yield
    finally:
        run("docker", "rm", "--force", "--volumes", container)


def _conf(project: DockerProject) -> str:
    """Return the conf of all brokers, on ports of the checkout's block that no other server has."""
    layout = project.layout
    first = layout.ports[NAME_SERVER]
    host = layout.hosts[NAME_SERVER].rsplit(".", 1)[0] + ".5"
    text = string.Template(Path(project.checkout, "docker/conf/common.conf").read_text()).substitute(
        name=NAME, host=host, port=first + 14, name_server=layout.address(NAME_SERVER)
    )
    return text + _STORE


def _is_registered(name_server: str) -> bool:
    with Admin(ClientConfig(name_server=name_server)) as admin:
        try:
            return NAME in admin.fetch_cluster_info().broker_addr_table
        except RocketMQError:
            return False
