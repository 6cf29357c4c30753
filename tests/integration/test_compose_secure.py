"""docker/compose-secure.yml as docker/README.md says: TLS, a client certificate, signed requests."""

import os
import shlex
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.errors import RocketMQError
from tests.support.cluster_scene import wait_until
from tests.support.docker_project import DockerProject, run
from tests.support.patience import PATIENCE

pytestmark = [pytest.mark.docker, pytest.mark.slow]

TOPIC = "guarded"


@pytest.fixture(scope="module")
def settings(
    docker_project: DockerProject, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """Of a client that the servers let in."""
    folder, docker = tmp_path_factory.mktemp("secure") / "made", docker_project.checkout / "docker"
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        name_server, broker = (one.getsockname()[1] for one in sockets)
    environment = {
        **os.environ,
        "RMQ_SECURE_DIR": str(folder),
        "RMQ_NAMESRV_PORT": str(name_server),
        "RMQ_BROKER_PORT": str(broker),
    }
    made = run(str(docker / "make-secure.sh"), str(folder), env=environment)
    assert made.returncode == 0, made.stderr
    command = [*shlex.split(docker_project.compose_command()), "-f", str(docker / "compose-secure.yml")]
    command += ["-p", f"{docker_project.layout.project}-secure"]
    try:
        up = run(*command, "up", "-d", env=environment)
        assert up.returncode == 0, up.stderr
        yield {
            "name_server": f"127.0.0.1:{name_server}",
            "tls_enable": True,
            "tls_ca_file": str(folder / "ca.pem"),
            "tls_cert_file": str(folder / "client.pem"),
            "tls_key_file": str(folder / "client.key"),
            "access_key": "admin",
            "secret_key": (folder / "secret_key").read_text().strip(),
        }
    finally:
        run(*command, "down", "--volumes", env=environment)


def has_broker(settings: dict[str, Any]) -> bool:
    try:
        with Admin(ClientConfig(**settings)) as admin:
            return bool(admin.fetch_cluster_info().broker_addr_table)
    except RocketMQError:
        return False


def send(settings: dict[str, Any]) -> int:
    with Producer(ProducerConfig(**settings)) as producer:
        return producer.send(Message(TOPIC, b"body")).queue_offset


def test_who_has_the_certificate_and_the_key_gets_in_and_nobody_else(settings):
    wait_until(lambda: has_broker(settings), seconds=PATIENCE)
    with Admin(ClientConfig(**settings)) as admin:
        admin.create_topic(TOPIC, read_queue_nums=1, write_queue_nums=1)

    assert send(settings) == 0
    with pytest.raises(RocketMQError, match="set tls_cert_file and tls_key_file"):
        send(
            {name: value for name, value in settings.items() if name not in ("tls_cert_file", "tls_key_file")}
        )
    with pytest.raises(RocketMQError, match="the secret_key does not belong to this access_key"):
        send(settings | {"secret_key": "wrong"})
    assert send(settings) == 1
