"""Names of a package that are imported when they are first used.

An import takes its time mostly to make classes, and each process that Spark starts for a read would make
those of producers, too. No name may be that of a file of its package, unless the file is meant: importing the
file gives the package that name.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


class LazyModule:
    """A module that few processes need, imported when one of its names is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``.

    Args:
        package: its ``__name__``.
        homes: by module, the names that it has, separated by spaces; a module may name itself.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}
    found = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = import_module(home_of[name])
        value = found[name] = home if home.__name__ == f"{package}.{name}" else getattr(home, name)
        return value

    def listed() -> list[str]:
        return sorted({*found, *home_of})

    return get, listed
