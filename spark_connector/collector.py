"""What PySpark's Python workers lose between two tasks to Python's garbage collector, and how not to.

A worker collects all garbage after every task. With pyspark, pyarrow, pandas and this package loaded it needs
60 ms for that, several times what a small task takes, on a processor that the query needs for its next step.
"""

import gc
import sys

_settled = False


def settle() -> None:
    """Call this when a task is over: what the first one has loaded is looked at no more.

    Objects of that time are still freed when nobody uses them; only where they refer to each other in a
    circle they stay for as long as the worker. In any other process nothing happens.
    """
    global _settled
    if not _settled and _is_worker():
        _settled = True
        gc.collect()
        gc.freeze()


def _is_worker() -> bool:
    """Whether this process is one that ``pyspark.daemon`` has forked."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name == "pyspark.daemon"
