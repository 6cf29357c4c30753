"""A lock file for one process at a time."""

import os
from pathlib import Path

from rmqtools.cluster.file_lock import FileLock


def test_a_released_lock_is_free_while_a_forked_child_has_its_descriptor(tmp_path: Path) -> None:
    lock, next_lock = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    lock.acquire(wait=False)
    assert lock._descriptor is not None
    with os.fdopen(os.dup(lock._descriptor)):  # as a child has it
        lock.release()

        assert next_lock.acquire(wait=False)
    next_lock.release()
