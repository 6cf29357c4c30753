"""The compiled twins of hot functions, where this installation has them (docs/decisions/0034).

A twin returns what its Python original returns, for plain input only; for any other input it returns None and
has no effect, and the original runs. So errors and rare cases are written once, in Python. The C sources lie
beside this file; ``RMQTOOLS_PURE_PYTHON=1`` in the environment leaves the twins out.

``exchange`` is the exception: it writes to a socket and reads from it once, and says how far it came; its
caller goes on from there.

- A compiled twin (``rmqtools/compiled``) handles plain input only, and runs no Python code: values that it
  has checked cannot change before it has written them, and every error comes from the Python original.
- The compiled module keeps its classes in globals of the process: it loads in the main interpreter, once, and
  takes the first class of each name. A second interpreter or a reloaded module would otherwise get objects of
  the first one.
- A list that C fills is unknown to the garbage collector until it is full: in 3.11 a collection runs in any
  allocation, and its callbacks would read items that are not there. For the same reason C owns what it uses
  after an allocation.
- ``Message.__init__`` is a compiled descriptor; reading the attribute returns the original, which has
  signature and annotations.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["state", "twins", "why_pure"]


def _load() -> tuple[Any, str | None]:
    """Return the module and None, or None and why there is no module."""
    if os.environ.get("RMQTOOLS_PURE_PYTHON", "0") not in ("", "0"):
        return None, "RMQTOOLS_PURE_PYTHON is set"
    if "free-threading" in sys.version:  # its objects have another layout
        return None, "free-threaded builds of Python run without it"
    try:
        return import_module("rmqtools.compiled._twins"), None
    except ModuleNotFoundError:  # built without a compiler, or read from a zip file
        return (
            None,
            "this installation has none: install a C compiler and Python's headers, then rmqtools again",
        )
    except ImportError as error:
        return None, str(error)


_twins, why_pure = _load()
"""``why_pure``: why this interpreter runs in Python; None: it has the compiled module."""

if TYPE_CHECKING:
    import rmqtools.compiled._twins as twins
else:
    twins = _twins
    """The module of the twins; None: there is none."""


def state() -> str:
    """Return whether this interpreter uses the compiled module, and if not, why."""
    return "active" if why_pure is None else f"not active: {why_pure}"
