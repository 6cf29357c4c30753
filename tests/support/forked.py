"""Work in a forked child of the test's process."""

import os
import warnings
from collections.abc import Callable


def in_child(call: Callable[[], str]) -> str:
    """Return what ``call`` returns in a forked child; empty if it raises or ends the child.

    The threads of the test's process do not matter here: Python 3.12 and newer warn of them.
    """
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*fork.*", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            os.write(write, call().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said
