"""The pages of the reference, made from public names: a page for each client class, and for each subject.

:mod:`tools.site_pages` adds them to the site. Every name of a public ``__all__`` is on one of them.
"""

import inspect
import re
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import rmqtools
from rmqtools import aio

_WITH: Final = {  # names on the page of a class
    "Producer": ("create_reply",),
    "PushConsumer": ("MessageListener",),
    "TransactionProducer": ("TransactionListener",),
}
_SUBJECTS: Final = {  # page: its title, the packages whose names it has, and names of other modules
    "settings": ("Settings", ("rmqtools.config",), ("rmqtools.config.mirror.MirrorConfig",)),
    "allocate": ("Strategies and selectors", ("rmqtools.allocate", "rmqtools.select"), ()),
    "arrow": ("Arrow", ("rmqtools.arrow",), ()),
    "group": ("Groups, for operators", ("rmqtools.group",), ()),
    "broker": ("Brokers, for operators", ("rmqtools.broker",), ()),
    "plot": ("Pictures", ("rmqtools.plot",), ()),
    "features": ("Features of servers", ("rmqtools.compatibility",), ("rmqtools.compiled.state",)),
    "once": (
        "Once, logging, telemetry",
        ("rmqtools.once", "rmqtools.otel"),
        ("rmqtools.once.deduplicate.Deduplicated", "rmqtools.log.configure", "rmqtools.log.event_values"),
    ),
    "testing": ("Testing and local clusters", ("rmqtools.testing", "rmqtools.cluster"), ()),
    "spark": ("Spark functions", ("spark_connector",), ()),
}
_ERRORS: Final = ("errors", "RocketMQError")  # reference/errors.md


def reference_pages() -> dict[str, str]:
    """Return the pages by their paths."""
    subjects = {
        f"reference/{name}.md": f"# {title}\n\n"
        + "\n".join(_part(each) for each in packages)
        + _entries(more)
        for name, (title, packages, more) in _SUBJECTS.items()
    }
    clients = {"reference/clients.md": _index()} | _client_pages()
    return clients | {"reference/messages.md": _messages()} | subjects


def client_classes() -> list[str]:
    """Return the names of the classes that both faces have."""
    both = [name for name in aio.__all__ if inspect.isclass(getattr(aio, name))]
    return [name for name in both if not any(name in names for names in _WITH.values())]


def _file(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() + ".md"


def _index() -> str:
    rows = "".join(
        f"| [`{name}`](clients/{_file(name)}) | {_first_line(getattr(rmqtools, name))} |\n"
        for name in client_classes()
    )
    return (
        "# Clients\n\nThe blocking classes are in `rmqtools`. `rmqtools.aio` has the same classes and "
        "methods as coroutines, with the same arguments. Each page has both.\n\n"
        f"| class | |\n|---|---|\n{rows}"
    )


def _client_pages() -> dict[str, str]:
    return {f"reference/clients/{_file(name)}": _client_page(name) for name in client_classes()}


def _client_page(name: str) -> str:
    faces = (("Blocking", "rmqtools"), ("asyncio", "rmqtools.aio"))
    parts = [f"# {name}\n\nBlocking, and [for asyncio](#asyncio): the same methods as coroutines.\n"]
    for title, package in faces:
        with_it = "".join(f"::: {package}.{more}\n" for more in _WITH.get(name, ()))
        options = "    options:\n      inherited_members: true\n"
        parts.append(f"\n## {title}\n\n::: {package}.{name}\n{options}{with_it}")
    return "".join(parts)


def _messages() -> str:
    elsewhere = {*client_classes(), *_ERRORS, *(name for names in _WITH.values() for name in names)}
    names = [name for name in rmqtools.__all__ if name not in elsewhere and not name.endswith("Config")]
    return "# Messages and results\n\n" + _entries(home_of(rmqtools, name) for name in names)


def _part(package: str) -> str:
    module: Any = import_module(package)
    names = [name for name in module.__all__ if name not in _ERRORS]
    return f"{inspect.getdoc(module)}\n\n" + _entries(home_of(module, name) for name in names)


def _entries(places: Iterable[str]) -> str:
    return "".join(f"::: {place}\n" for place in places)


def home_of(module: ModuleType, name: str) -> str:
    """Return the full name under which a public name is defined: a package's file may have the same name."""
    value = getattr(module, name)
    home = getattr(value, "__module__", None)
    if home is None or not (inspect.isclass(value) or inspect.isfunction(value)):
        return f"{module.__name__}.{name}"
    return f"{home}.{name}"


def _first_line(value: object) -> str:
    return (inspect.getdoc(value) or "").partition("\n")[0]
