"""The logs of a local cluster's servers, also after they were stopped."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from rmqtools.cluster.errors import ClusterError
from rmqtools.unknown_name import unknown_name

_LOG, _OUTPUT = "server.log", "output.log"


def find_log(directory: Path, server: str, *, jvm: bool = False) -> Path:
    """Return the path of a server's log; ``jvm``: of its JVM's output, which shows why a start failed.

    Raises:
        ClusterError: no such server has run in the directory.
    """
    name = _OUTPUT if jvm else _LOG
    known = sorted(path.parent.name for path in directory.glob(f"*/{name}"))
    if not known:
        raise ClusterError(f"no server has run in {directory}: start a cluster with rmqtools cluster up")
    if server not in known:
        raise ClusterError(unknown_name("server", server, known))
    return directory / server / name


def last_lines(path: Path, count: int) -> list[str]:
    """Return the last lines of a log."""
    with _opened(path) as file:
        return [line.rstrip("\n") for line in deque(file, maxlen=count)]


def follow(path: Path, count: int, wait: Callable[[], object]) -> Iterator[str]:
    """Yield the last lines of a log, then those that are written; ``wait`` is called where there is none yet.

    Servers move a log of 20 MB aside and begin a new one, which is then read from its beginning.
    """
    file = _opened(path)
    try:
        lines = deque(file, maxlen=count)
        part = lines.pop() if lines and not lines[-1].endswith("\n") else ""
        yield from (line.rstrip("\n") for line in lines)
        while True:
            if text := file.readline():
                part += text
                if part.endswith("\n"):
                    yield part.rstrip("\n")
                    part = ""
            elif path.exists() and path.stat().st_ino != os.fstat(file.fileno()).st_ino:
                file.close()
                file = _opened(path)
            else:
                wait()
    finally:
        file.close()


def _opened(path: Path) -> TextIO:
    return path.open(newline="\n", encoding="utf-8", errors="replace")
