"""A lock file for one process at a time. The system releases it when its holder dies."""

import fcntl
import os
from pathlib import Path


class FileLock:
    """An exclusive ``flock`` on a file that holds its holder's pid.

    The file stays when the lock is released: after a removal, two processes could lock two files.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, *, wait: bool) -> bool:
        """Take the lock; return False if another process has it and ``wait`` is False."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return False
        except BaseException:
            os.close(descriptor)
            raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        self._descriptor = descriptor
        return True

    def holder(self) -> str:
        """Return the pid of the process that took the lock last, as text."""
        return self.path.read_text().strip() or "unknown"

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # closing is not enough where a forked child has it
            os.close(self._descriptor)
            self._descriptor = None
