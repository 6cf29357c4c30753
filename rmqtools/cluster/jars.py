"""The server's jars: exactly those of a lock file, checked, in a directory of the user's own.

The package does not contain them, and no versions are resolved. The lock lists all jars with their
SHA-256, and :mod:`rmqtools.cluster.fetch` fetches exactly these.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rmqtools.cluster import fetch
from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.file_lock import FileLock
from rmqtools.cluster.lock import LockedJar, locked_jars
from rmqtools.log import get_logger

DownloadProgress = Callable[[int, int], None]  # jars fetched, jars in all

log = get_logger(__name__)


def cache_root() -> Path:
    """Return this user's download folder: RMQTOOLS_CACHE_DIR, else XDG_CACHE_HOME, else ~/.cache."""
    own = os.environ.get("RMQTOOLS_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(own) if own else Path(base, "rmqtools")).absolute()


def ensure_jars(
    jars: Sequence[LockedJar] | None = None, *, progress: DownloadProgress | None = None
) -> list[Path]:
    """Return the paths of the jars, in the lock's order, after fetching those that are missing.

    Safe in several processes at once: one fetches, the others wait. Every call checks every file, and a
    file gets its name only when it is complete and correct.

    Args:
        jars: which; None: all of the default version's servers.
        progress: called with the number of jars that are here and of all, as they come in.

    Raises:
        ClusterError: no way to fetch, a failed fetch, a file that differs from the lock, or a folder that
            cannot be used.
    """
    wanted = locked_jars() if jars is None else tuple(jars)
    directory = _directory(wanted)
    if (lock := _lock_to_fetch(wanted, directory)) is not None:
        try:
            _fill(wanted, directory, progress or (lambda done, total: None))
        finally:
            lock.release()
    return [directory / jar.file_name for jar in wanted]


def _lock_to_fetch(jars: Sequence[LockedJar], directory: Path) -> FileLock | None:
    """Return the taken lock of the folder; None: all jars are there."""
    lock = FileLock(directory / ".lock")
    try:
        if not _missing(jars, directory):
            return None
        lock.acquire(wait=True)
    except OSError as error:
        raise ClusterError(
            f"{directory} cannot be used: {error}: name another folder in RMQTOOLS_CACHE_DIR"
        ) from error
    return lock


def _directory(jars: Iterable[LockedJar]) -> Path:
    """Return jars/<version>: each version of the servers has its own folder."""
    version = next((jar.version for jar in jars if jar.artifact == "rocketmq-broker"), "other")
    return cache_root() / "jars" / version


def _missing(jars: Sequence[LockedJar], directory: Path) -> list[LockedJar]:
    """Return the jars that are missing or wrong."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # hashing lets other threads run
        sums = threads.map(lambda jar: _sha256(directory / jar.file_name), jars)
        return [jar for jar, found in zip(jars, sums, strict=True) if found != jar.sha256]


def _sha256(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def _fill(jars: Sequence[LockedJar], directory: Path, progress: DownloadProgress) -> None:
    """Fetch missing jars into a temporary directory, then rename them. The caller holds the lock."""
    for left_over in directory.glob(".fetch-*"):  # left by a process that was killed
        shutil.rmtree(left_over, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".fetch-") as name:
        work = Path(name)
        _copy_from_local_repository(_missing(jars, directory), work, directory)
        missing = _missing(jars, directory)  # another process may have been quicker
        if not missing:
            return
        here = len(jars) - len(missing)
        progress(here, len(jars))
        way = fetch.choose_way(missing, work, cache_root())
        fetch.run_way(way, work, directory / "fetch.log", lambda done: progress(here + done, len(jars)))
        _take_over(missing, work, directory, way)
        progress(len(jars), len(jars))
    log.info("jars_fetched", count=len(missing), way=way.name, directory=str(directory))


def _copy_from_local_repository(jars: Iterable[LockedJar], work: Path, directory: Path) -> None:
    """Copy jars from the user's Maven repository; wrong files there are ignored."""
    repository = Path.home() / ".m2" / "repository"
    for jar in jars:
        source = repository / jar.repository_path
        if source.is_file():
            copy = work / jar.file_name
            shutil.copyfile(source, copy)
            if _sha256(copy) == jar.sha256:
                copy.replace(directory / jar.file_name)
            else:
                copy.unlink()


def _take_over(jars: Iterable[LockedJar], work: Path, directory: Path, way: fetch.Way) -> None:
    """Keep the correct files, so that they need not be fetched again; then refuse the first wrong one."""
    wrong: list[str] = []
    for jar in jars:
        found = _sha256(work / jar.file_name)
        if found == jar.sha256:
            (work / jar.file_name).replace(directory / jar.file_name)
        else:
            wrong.append(f"expected SHA-256 {jar.sha256}, got {found or 'no file'}, for {jar.file_name}")
    way.forget()
    if wrong:
        raise ClusterError(
            f"broken download: {wrong[0]} ({len(wrong)} wrong in all, removed), "
            f"brought by {way.name}: {way.remedy}"
        )
