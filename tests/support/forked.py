"""Work in a forked child of the test's process."""

import os
from collections.abc import Callable


def in_child(call: Callable[[], str]) -> str:
    """What ``call`` returns in a forked child."""
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.write(write, call().encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said
