"""The compiled twins of hot functions, where this installation has them (docs/decisions/0034).

A twin returns what its Python original returns, for plain input only; for any other input it returns None and
has no effect, and the original runs. So errors and rare cases are written once, in Python. The C sources lie
beside this file; ``RMQTOOLS_PURE_PYTHON=1`` in the environment leaves the twins out.

``exchange`` is the exception: it writes to a socket and reads from it once, and says how far it came; its
caller goes on from there.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["twins"]


def _load() -> Any:
    if os.environ.get("RMQTOOLS_PURE_PYTHON", "0") not in ("", "0"):
        return None
    try:
        return import_module("rmqtools.compiled._twins")
    except ImportError:  # built without a compiler, or read from a zip file
        return None


if TYPE_CHECKING:
    import rmqtools.compiled._twins as twins
else:
    twins = _load()
    """The module of the twins; None: there is none."""
