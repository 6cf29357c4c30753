"""Writes the blocking classes of ``rmqtools.sync`` from the asyncio classes of ``rmqtools.engine``.

python -m tools.blocking_classes  # writes the files

Each method gets the signature and the docstring of the asyncio method, and one line, whose form is marked
there (:mod:`rmqtools.engine.blocking_form`). The base classes in ``rmqtools.sync.handwritten`` have the rest.
"""

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FunctionType

from rmqtools import aio
from rmqtools.engine.admin.brokers import BrokerAdmin
from rmqtools.engine.admin.checks import CheckAdmin
from rmqtools.engine.admin.drains import DrainAdmin
from rmqtools.engine.admin.group_configs import GroupConfigAdmin
from rmqtools.engine.admin.group_offsets import GroupOffsetAdmin
from rmqtools.engine.admin.groups import GroupAdmin
from rmqtools.engine.admin.messages import MessageAdmin
from rmqtools.engine.admin.pins import PinAdmin
from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.admin.stories import StoryAdmin
from rmqtools.engine.admin.topics import TopicAdmin
from rmqtools.engine.blocking_form import Form, mark_of
from rmqtools.engine.connection.connected import Connected

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "rmqtools.sync"
_SHARED = "Safe to share between threads."
_HOMES = {  # names in signatures that mean something else here
    "Client": f"{PACKAGE}.client",
    "MessageListener": f"{PACKAGE}.handwritten.push_consumer",
}
_WORDS = {  # in docstrings
    "``async with``": "``with``",
    "rmqtools.aio.": "rmqtools.",
    "a coroutine function.": "a function; may block.",
    "on the loop when": "on a thread when",
    "; must not block": "; may block",
}
_SECTIONS = re.compile(r"\n\n(?=(?:Args|Returns|Yields|Raises|Source of the rule)\b)")


@dataclass(frozen=True)
class BlockingClass:
    """A class to write."""

    asynchronous: type
    inner: str
    """The attribute that has the asynchronous object."""

    note: str
    """A paragraph for the docstring of the class."""

    parts: tuple[type, ...] = ()
    """The classes whose methods are written, in this order; none: those of ``asynchronous`` itself."""

    @property
    def name(self) -> str:
        """The name that both classes have."""
        return self.asynchronous.__name__

    @property
    def module(self) -> str:
        """The name of the file, without its ending."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()

    @property
    def path(self) -> Path:
        """The file."""
        return ROOT.joinpath(*PACKAGE.split("."), f"{self.module}.py")


_GROUP_PARTS = (GroupOffsetAdmin, GroupConfigAdmin, GroupAdmin)
_ADMIN_PARTS = (
    BrokerAdmin,
    DrainAdmin,
    TopicAdmin,
    QueueAdmin,
    *_GROUP_PARTS,
    MessageAdmin,
    StoryAdmin,
    PinAdmin,
    CheckAdmin,
)
CLASSES = (
    BlockingClass(aio.Client, "asynchronous", _SHARED, (aio.Client, Connected)),
    BlockingClass(aio.Admin, "_admin", _SHARED, (*_ADMIN_PARTS, Connected, aio.Admin)),
    BlockingClass(aio.Producer, "_producer", _SHARED, (aio.Producer, Connected)),
    BlockingClass(aio.TransactionProducer, "_transactions", _SHARED),
    BlockingClass(
        aio.PullConsumer,
        "_consumer",
        "One thread polls, any may call the rest.",
        (aio.PullConsumer, Connected),
    ),
    BlockingClass(
        aio.PushConsumer,
        "_consumer",
        "Listeners run on ``consume_threads`` threads.",
        (aio.PushConsumer, Connected),
    ),
    BlockingClass(
        aio.SimpleConsumer,
        "_consumer",
        _SHARED,
        (aio.SimpleConsumer, Connected),
    ),
    BlockingClass(aio.ExactAppender, "_appender", "One thread appends."),
    BlockingClass(aio.DecisionLog, "_log", _SHARED),
    BlockingClass(aio.StagedWrites, "_writes", _SHARED),
    BlockingClass(aio.Mirror, "_mirror", "One thread runs it, any may ask for its progress."),
)


class _Names(ast.NodeVisitor):
    """The names that expressions use."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        self.found.add(node.id)


@cache
def _lines(module: str) -> list[str]:
    return Path(inspect.getfile(sys.modules[module])).read_text().split("\n")


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse("\n".join(_lines(module)))


def _definition(function: FunctionType) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return the source of a method."""
    owner, name = function.__qualname__.split(".")
    (class_,) = (
        n for n in _tree(function.__module__).body if isinstance(n, ast.ClassDef) and n.name == owner
    )
    (found,) = (
        node
        for node in class_.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    )
    return found


def _public_methods(part: type) -> Iterator[tuple[FunctionType, bool]]:
    """Yield the methods to write, a marked constructor among them, and whether each is a property."""
    for name, member in vars(part).items():
        function = member.fget if isinstance(member, property) else member
        if not isinstance(function, FunctionType) or function.__qualname__ != f"{part.__name__}.{name}":
            continue  # an Asynchronous has those of its parts, too
        if not name.startswith("_") or mark_of(function).form:
            yield function, isinstance(member, property)


def docstring(text: str, note: str, indent: str) -> str:
    """Return a docstring of the blocking face: the note stands before the sections."""
    for word, instead in _WORDS.items():
        text = text.replace(word, instead)
    about, *sections = _SECTIONS.split(text)
    body = "\n\n".join([about, *([textwrap.fill(note, 106 - len(indent))] if note else []), *sections])
    end = f"\n{indent}" if "\n" in body else ""
    return textwrap.indent(f'"""{body}', indent).replace(f"\n{indent}\n", "\n\n") + f'{end}"""'


def _arguments(arguments: ast.arguments) -> str:
    """Return the arguments that pass on a method's parameters, without ``self``."""
    given = [each.arg for each in (*arguments.posonlyargs, *arguments.args)][1:]
    given += [f"{each.arg}={each.arg}" for each in arguments.kwonlyargs]
    return ", ".join(given + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else []))


def _form(function: FunctionType, returns: str, *, is_property: bool) -> Form:
    if (marked := mark_of(function).form) is not None:
        return marked
    if inspect.iscoroutinefunction(function):
        return "run"
    if returns.startswith("Async"):
        return "iterate"
    if is_property:
        return "direct"
    raise ValueError(f"{function.__qualname__}: mark it with @blocking: neither coroutine nor iterator")


def method(function: FunctionType, inner: str, *, is_property: bool, names: _Names) -> str:
    """Return the text of a blocking method; empty if it is written by hand."""
    node, mark = _definition(function), mark_of(function)
    assert node.returns is not None
    names.visit(node.args)
    names.visit(node.returns)
    returns = ast.unparse(node.returns)
    form = _form(function, returns, is_property=is_property)
    name = node.name
    given = _arguments(node.args)
    if form == "by_hand":
        return ""
    call = f"self.{inner}.{name}" + ("" if is_property else f"({given})")
    line = {
        "run": f"self._bridge.run(lambda: {call})",
        "iterate": f"self._bridge.iterate({call})",
        "direct": call,
        "call": f"self._bridge.call(lambda: {call})",
        "sends": f"self._sends.{name}({given})",
        "base": f"super().{name}({given})",
    }[form]
    returns = re.sub(r"^Async(?:Generator|Iterator)\[(.*?)(?:, None)?\]$", r"Iterator[\1]", returns)
    about = docstring(ast.get_docstring(node) or "", mark.note, "        ")
    decorator = "    @property\n" if is_property else ""
    result = "" if returns == "None" else "return "
    head = f"{decorator}    def {name}({ast.unparse(node.args)}) -> {returns}:\n"
    return f"{head}{about}\n        {result}{line}\n"


def _imports(parts: Sequence[type], names: set[str]) -> str:
    """Return the imports and constants that signatures need, as the asyncio modules have them."""
    lines: dict[str, str] = {}
    for part in parts:
        (module,) = {function.__module__ for function, _ in _public_methods(part)} or {part.__module__}
        for node in _tree(module).body:
            if isinstance(node, ast.ImportFrom):
                lines |= {
                    n.name: f"from {node.module} import {n.name}" for n in node.names if n.name in names
                }
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name) and target.id in names - _HOMES.keys():
                    lines[f"~{target.id}"] = "\n".join(_lines(module)[node.lineno - 1 : node.end_lineno])
                    in_constant = _Names()
                    in_constant.visit(node)
                    names |= in_constant.found
    lines |= {name: f"from {home} import {name}" for name, home in _HOMES.items() if name in names}
    return "\n".join(lines[name] for name in sorted(lines))


def text_of(blocking: BlockingClass) -> str:
    """Return the file of a class."""
    parts, names = blocking.parts or (blocking.asynchronous,), _Names()
    methods = [
        method(function, blocking.inner, is_property=is_property, names=names)
        for part in parts
        for function, is_property in _public_methods(part)
    ]
    methods = [text for text in methods if text]
    if any("-> Iterator[" in text for text in methods):
        names.found -= {"AsyncIterator", "AsyncGenerator"}
        iterator = "from collections.abc import Iterator\n"
    else:
        iterator = ""
    about = docstring(inspect.getdoc(blocking.asynchronous) or "", blocking.note, "    ")
    base = f"Blocking{blocking.name}"
    text = f'''"""The blocking {blocking.name}, written by ``python -m tools.blocking_classes``.

Change the class of :mod:`rmqtools.aio` instead, and run the program again. One file because it is one class.
"""

{iterator}from {PACKAGE}.handwritten.{blocking.module} import {base}
{_imports(parts, names.found)}


class {blocking.name}({base}):
{about}

    __module__ = "rmqtools"

''' + "\n".join(methods)
    for command in (("check", "--select", "I,F401", "--fix"), ("format",)):
        ruff = [
            sys.executable,
            "-m",
            "ruff",
            *command,
            "--quiet",
            "--stdin-filename",
            str(blocking.path),
            "-",
        ]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def main() -> None:
    """Write the files."""
    for blocking in CLASSES:
        blocking.path.write_text(text_of(blocking))


if __name__ == "__main__":
    main()
