"""Classes and functions that users name in text, as ``module:Class``, and the options they are made with.

    make = load_callable("my_package.rooms:AllocateByRack", what="strategy")
    allocate_by_rack = partial(make, **match_options(make, {"Racks": "a,b"}, what="strategy"))

The one place of the package that imports by name; command line and Spark options come here.
:func:`load_class` is for texts of users who may not run programs: it returns only a class of a role.
"""

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rmqtools.config.text import match_name
from rmqtools.errors import ConfigError
from rmqtools.unknown_name import unknown_name


@dataclass(frozen=True, slots=True)
class Role:
    """The purpose of a class that users name.

    Attributes:
        noun: the name of the purpose in errors: ``allocation strategy``.
        methods: the methods that a class needs, and with how many arguments each is called.
    """

    noun: str
    methods: Mapping[str, int]


class Load(Protocol):
    """Function that returns the class, or function, that ``module:Class`` names."""

    def __call__(self, text: str, *, what: str, role: Role) -> Callable[..., Any]:
        """Return it; ``what`` is its name in errors: ``strategy 'a:B'``."""


def load_any(text: str, *, what: str, role: Role) -> Callable[..., Any]:
    """Return what :func:`load_callable` returns; the role is not checked."""
    return load_callable(text, what=what)


def load_callable(text: str, *, what: str) -> Callable[..., Any]:
    """Return the class or function that ``module:Class`` names.

    Args:
        text: the name.
        what: how the error's text calls it: ``strategy 'a:B'``.

    Raises:
        ConfigError: no such module or name, or nothing that can be called.
    """
    found = _load(text, what)
    if not callable(found):
        raise ConfigError(f"{what} is a {type(found).__name__}: want a class, or a function")
    make: Callable[..., Any] = found
    return make


def load_class(text: str, *, what: str, role: Role) -> Callable[..., Any]:
    """Return the class of a role that ``module:Class`` names. Imports the module, and calls nothing of it.

    Raises:
        ConfigError: no such module or name, no class, or a class without the methods of the role.
    """
    found = _load(text, what)
    if not isinstance(found, type):
        raise ConfigError(f"{what} is a {type(found).__name__}: want a class")
    for method, count in role.methods.items():
        if not _has_method(found, method, count):
            raise ConfigError(
                f"{what} cannot be a {role.noun}: want a class with a method {method!r} of {count} arguments"
            )
    return found


def _load(text: str, what: str) -> Any:
    module, _, name = text.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"{what}: {error}: want module:Class that can be imported") from error


def _has_method(kind: type, name: str, count: int) -> bool:
    """Return whether instances have a method for ``count`` arguments; ``type.__call__`` does not count."""
    method = next((vars(one)[name] for one in kind.__mro__ if name in vars(one)), None)
    own = 0 if isinstance(method, staticmethod) else 1  # the instance, or the class
    function = getattr(method, "__func__", method)
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*[None] * (own + count))
    except (TypeError, ValueError):
        return False
    return True


def match_options(
    make: Callable[..., Any],
    options: Mapping[str, Any],
    *,
    what: str,
    kind: str = "option",
    names: Sequence[str] | None = None,
    prefix: str = "",
) -> dict[str, Any]:
    """Return the options by the parameters they mean; case, ``_``, ``-`` and ``.`` make no difference.

    Args:
        make: the class or function that will be called with them.
        options: options as users wrote them. A name that is no parameter goes as it is to ``**options``.
        what: how errors call ``make``: ``strategy PINNED_BY_IP``.
        kind: how errors call an option: ``unknown option of strategy PINNED_BY_IP 'ip' (did you ...)``.
        names: the parameters that may be given; None: all.
        prefix: in front of an option's name where users write it, for errors.

    Raises:
        ConfigError: an unknown option, or a missing one; the text has the nearest name, or all known ones.
    """
    signature = _signature(make, what)
    parameters = signature.parameters
    known = {match_name(name): name for name in (parameters if names is None else names)}
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    values: dict[str, Any] = {}
    for option, value in options.items():
        if (name := known.get(match_name(option), option if takes_any else None)) is None:
            raise ConfigError(unknown_name(kind, prefix + option, [prefix + one for one in known.values()]))
        values[name] = value
    try:
        signature.bind(**values)
    except TypeError as error:
        takes = ", ".join(prefix + name for name in known.values()) or "none"
        raise ConfigError(f"{what}: {error}; it takes {takes}") from error
    return values


def _signature(make: Callable[..., Any], what: str) -> inspect.Signature:
    try:
        return inspect.signature(make)
    except ValueError as error:  # some classes written in C
        raise ConfigError(f"{what}: {error}: wrap it in a function") from error
