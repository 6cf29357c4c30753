"""A Kafka broker from the jars, for the time of a block."""

import base64
import contextlib
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rmqtools.cluster import ensure_jars
from rmqtools.cluster.java import find_java
from rmqtools.cluster.lock import LockedJar
from rmqtools.cluster.ports import LOOPBACK, PortPicker
from tools.measure.bench.broker import QUEUES, SERVER_JVM

VERSION: Final = "3.9.1"
_PATIENCE: Final = 60.0
_SETTINGS: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "broker.session.timeout.ms": "120000",  # upstream 9 s: a busy machine is no reason to stop
    "num.partitions": str(QUEUES),  # of a topic that the sink makes
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@dataclass(frozen=True)
class KafkaBroker:
    """A running broker."""

    address: str
    pid: int


def jars(name: str) -> list[str]:
    """Return the files of ``NAME.lock``, fetched if they are missing."""
    lines = Path(__file__).with_name(f"{name}.lock").read_text(encoding="ascii").splitlines()
    locked = [LockedJar.parse(line) for line in lines if not line.startswith("#")]
    return [str(path) for path in ensure_jars(locked)]


@contextlib.contextmanager
def running_kafka() -> Iterator[KafkaBroker]:
    """One node that is broker and controller (KRaft), with the JVM options of the other side's broker."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        port, properties = _write_properties(folder)
        java = [find_java(), *SERVER_JVM.split(), "-cp", ":".join(jars("broker"))]
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22].decode()
        formatting = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", properties]
        subprocess.run([*java, *formatting], check=True, capture_output=True, timeout=_PATIENCE)
        with (
            (folder / "log").open("wb") as log,
            subprocess.Popen(
                [*java, "kafka.Kafka", properties],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C ends Spark first
            ) as process,
        ):
            try:
                _await_port(port, process, folder / "log")
                yield KafkaBroker(f"{LOOPBACK}:{port}", process.pid)
            finally:
                process.kill()


def _write_properties(folder: Path) -> tuple[int, str]:
    ports = PortPicker()
    port, controller = (ports.name_server_port(None) for _ in range(2))
    settings = {
        **_SETTINGS,
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller}",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "log.dirs": str(folder / "data"),
    }
    properties = folder / "server.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return port, str(properties)


def _await_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection((LOOPBACK, port)):
            return
        if process.poll() is not None or time.monotonic() > deadline:
            said = log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"Kafka does not listen on port {port}: {said}")
        time.sleep(0.05)
