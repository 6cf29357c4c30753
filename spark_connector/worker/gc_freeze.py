"""Excludes the objects that a Python worker loads in its first task from garbage collection.

A worker collects garbage after every task. With pyspark, pyarrow, pandas and this package loaded, that takes
60 ms, several times as long as a small task, on a processor that the query needs for its next step.
"""

import gc
import sys

_is_frozen = False


def freeze_once() -> None:
    """Freeze the objects loaded so far, once, at the end of a worker's first task.

    Frozen objects are still freed when their last reference goes; only reference cycles among them live as
    long as the worker. Does nothing in other processes.
    """
    global _is_frozen
    if not _is_frozen and _is_worker():
        _is_frozen = True
        gc.collect()
        gc.freeze()


def _is_worker() -> bool:
    """Return whether ``pyspark.daemon`` has forked this process."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name == "pyspark.daemon"
