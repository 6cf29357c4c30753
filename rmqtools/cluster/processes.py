"""The processes that belong to one directory: finds, stops and watches them.

Every process has its directory on its command line (:func:`mark`), so no recorded pid is needed. A pid
that now belongs to another process is never touched, and a process whose pid could not be recorded is
found as well. A process of another user, or one of another program, is never touched, in spite of the mark.

Run as a script (``python -I -S processes.py DIRECTORY OWNER``) this file is the watchdog: it waits until
its standard input ends, and then kills the directory's processes. The input ends when the
process at the other end dies, even by kill -9. A forked child of that process keeps the input open, so the
watchdog also looks for its parent. So this file uses only small modules of the standard library.
"""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Self

_STARTED = (  # how an argument behind the mark begins
    b"org.apache.rocketmq.",  # main classes of the servers
    b"org.apache.maven.plugins:",  # the two programs that fetch jars
    b"org.apache.ivy.",
)
_OPTION = "-Drmqtools.directory="
_ROUND = 0.05  # seconds between two checks
_OWNER_ROUND = 1.0  # seconds between two checks whether the owner lives
_RELEASE = b"release"


def mark(directory: Path) -> str:
    """Return the argument that makes a Java command belong to ``directory``."""
    return f"{_OPTION}{directory}"


def find_processes(directory: Path) -> list[int]:
    """Return the pids of the living processes that belong to ``directory``, lowest first."""
    wanted = os.fsencode(mark(directory))
    found = _proc_arguments() if Path("/proc/self/cmdline").exists() else _ps_arguments()
    return sorted(
        pid for pid, arguments in found.items() if _is_ours(arguments, wanted) and pid != os.getpid()
    )


def _is_ours(arguments: list[bytes], wanted: bytes) -> bool:
    """Return whether a command line is that of a server or a fetch: the mark, then what is run."""
    if wanted not in arguments:
        return False
    return any(one.startswith(_STARTED) for one in arguments[arguments.index(wanted) + 1 :])


def _proc_arguments() -> dict[int, list[bytes]]:
    """Return the command lines of this user's processes."""
    arguments = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == os.geteuid():
                    arguments[int(entry.name)] = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it ended meanwhile
    return arguments


def _ps_arguments() -> dict[int, list[bytes]]:
    """For systems without /proc. Arguments are cut at blanks: a directory with blanks is not found."""
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,uid=,command="], capture_output=True, check=True)
    rows = (line.split() for line in listed.stdout.splitlines())
    return {int(row[0]): row[2:] for row in rows if row[1:2] == [str(os.geteuid()).encode()]}


def stop_processes(directory: Path, *, grace: float, only: int | None = None) -> list[int]:
    """Stop all processes of ``directory``; return the pids that were found.

    Args:
        directory: the directory that the processes belong to.
        grace: seconds between asking (SIGTERM) and killing; 0 kills at once.
        only: the pid of the one to stop; None: all.
    """
    found = _living(directory, only)
    if grace > 0 and found:
        _signal(found, signal.SIGTERM)
        _wait_gone(directory, grace, only)
    _kill_all(directory, only)
    return found


def _living(directory: Path, only: int | None) -> list[int]:
    return [pid for pid in find_processes(directory) if only in (None, pid)]


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue  # it ended meanwhile, and its pid may be another user's now


def _wait_gone(directory: Path, seconds: float, only: int | None) -> None:
    pause = Event()
    for _ in range(int(seconds / _ROUND)):
        if not _living(directory, only):
            return
        pause.wait(_ROUND)


def _kill_all(directory: Path, only: int | None = None) -> None:
    """Kill until two checks in a row find nothing: one may happen between a fork and its exec."""
    pause, clean = Event(), 0
    while clean < 2:
        found = _living(directory, only)
        _signal(found, signal.SIGKILL)
        clean = 0 if found else clean + 1
        pause.wait(_ROUND / 5)


class Watchdog:
    """Kills the processes of a directory as soon as this process has ended in any way.

    A context manager: leaving it releases the watchdog, which then ends without killing anything.
    A parent-death signal would be simpler, but it fires when the *thread* that started a child ends.
    """

    def __init__(self, directory: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(directory), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a terminal must not reach it
        )

    def release(self) -> None:
        """End the watchdog; the directory's processes run on. A second call does nothing."""
        if self._process.poll() is None:
            self._process.communicate(_RELEASE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def watch(directory: Path, owner: int) -> None:
    """Wait for the release, the end of standard input or that of the owner; kill if there was no release.

    Neither a release nor the owner's end ends the input where a forked child of the owner has the pipe, too.
    """
    has_input, owner_lives = False, True
    while not has_input and owner_lives:
        has_input = bool(select.select([sys.stdin], [], [], _OWNER_ROUND)[0])
        owner_lives = os.getppid() == owner
    if not has_input or sys.stdin.buffer.read(len(_RELEASE)) != _RELEASE:
        _kill_all(directory)


if __name__ == "__main__":
    watch(Path(sys.argv[1]), int(sys.argv[2]))
