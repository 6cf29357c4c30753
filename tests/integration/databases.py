"""PostgreSQL and Redis servers of Debian, each in a folder of its own, reached through a socket in it."""

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
import sqlalchemy as sa

from tests.support.cluster_scene import wait_until

_PACKAGES = "redis-server postgresql"
_START_SECONDS = 60.0


class NoServerError(Exception):
    """A server is not installed, and cannot be."""


@contextmanager
def postgresql(folder: Path) -> Iterator[sa.Engine]:
    """Run a server; yield an engine that is connected to an empty database."""
    initdb = _program("initdb", Path("/usr/lib/postgresql"))
    data = folder / "data"
    owner = _owner(folder)
    subprocess.run(
        [initdb, "-D", data, "-U", "rmqtools", "-A", "trust"], check=True, capture_output=True, user=owner
    )
    server = subprocess.Popen(
        [
            initdb.with_name("postgres"),
            "-D",
            data,
            "-k",
            folder,
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=owner,
    )
    engine = sa.create_engine(f"postgresql+psycopg://rmqtools@/postgres?host={folder}")
    with _ended(server):
        wait_until(lambda: (folder / ".s.PGSQL.5432").exists() and _answers(engine), seconds=_START_SECONDS)
        try:
            yield engine
        finally:
            engine.dispose()


@contextmanager
def redis_server(folder: Path) -> Iterator[redis.Redis]:
    """Run a server; yield a client of it."""
    program, socket = _program("redis-server", Path("/usr/bin")), folder / "redis.sock"
    server = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", socket, "--dir", folder, "--save", ""],
        stdout=subprocess.DEVNULL,
    )
    with _ended(server):
        wait_until(socket.exists, seconds=_START_SECONDS)
        with redis.Redis(unix_socket_path=str(socket)) as client:
            wait_until(client.ping, seconds=_START_SECONDS)
            yield client


@contextmanager
def _ended(server: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        server.send_signal(signal.SIGINT)  # PostgreSQL waits for its clients after SIGTERM
        server.wait(_START_SECONDS)


def _answers(engine: sa.Engine) -> bool:
    try:
        with engine.connect():
            return True
    except sa.exc.OperationalError:  # it is starting
        return False


def _owner(folder: Path) -> str | None:
    """PostgreSQL refuses to run as root: Debian's package has made a user for it."""
    if os.getuid():
        return None
    user = pwd.getpwnam("postgres")
    os.chown(folder, user.pw_uid, user.pw_gid)
    for parent in (folder, *folder.parents):
        if not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)  # pytest's folders are for their owner only
    return user.pw_name


def _program(name: str, folder: Path) -> Path:
    """The program's path; its package is installed where there is none."""
    found = sorted(folder.rglob(name))
    if not found and shutil.which("apt-get") and os.getuid() == 0:
        line = f"apt-get update -q; apt-get install -y -q --no-install-recommends {_PACKAGES}"
        subprocess.run(
            ["sh", "-c", line],
            check=False,
            capture_output=True,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
        found = sorted(folder.rglob(name))
    if not found:
        raise NoServerError(f"no {name} below {folder}: run as root: apt-get install {_PACKAGES}")
    return found[-1]
