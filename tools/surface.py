"""The public surface: what users name, the page of each thing, and changes that lack a line in CHANGELOG.md.

python -m tools.surface  # prints what is missing, page by page, and where it goes
python -m tools.surface --write  # writes spark_connector/OPTIONS.md, which is made from the table of options
python -m tools.surface --release  # what make release runs: the surface of now is the released one

:data:`KINDS` is the one table of kinds and their pages. ``tools/released_surface.txt`` has a line for each
public thing at the last release. What differs from it must be named under "Unreleased" in CHANGELOG.md, so a
contributor writes the line for users, and nothing else.

One file because each kind is a row of that table, with the functions that read its two sides.
"""

import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import FunctionType
from typing import Any, Final, NamedTuple

from rmqtools import aio, config, errors
from rmqtools.arrow import WRITE_COLUMNS
from rmqtools.cli.exit_code import ExitCode
from rmqtools.model.group_view import FindingKind
from rmqtools.model.read_columns import READ_COLUMNS
from rmqtools.policy.severity import severity_of
from spark_connector.options.option_table import OPTIONS, describe_options
from tools.reference_pages import client_classes, home_of, reference_pages
from tools.site_pages import describe_commands, every_command
from tools.sources import PACKAGES, ROOT, files_of, tree_of

RELEASED: Final = ROOT / "tools" / "released_surface.txt"
_LEVELS: Final = ("debug", "info", "warning", "error", "exception")
_METRICS: Final = ("rmqtools/otel/metrics.py", "rmqtools/cli/exporter/metrics.py")
_METRIC_NAME: Final = re.compile(r"(rmqtools|rocketmq|messaging)[._][a-z_.]+[0-9]*")
_SIGNALS: Final = ("130", "143")  # Interrupted.exit_code


class Kind(NamedTuple):
    """A kind of public thing, and its page.

    Attributes:
        name: in the singular.
        page: the file that a contributor edits or, for generated pages, the file that the page is made from.
        found: the names of the things that exist, each with its default, type, values, parameters, severity,
            level or bases: users see a change of these, too.
        shown: the names that the page has.
        row: what to add for a missing name; ``{}`` is the name.
        is_exact: whether the page names nothing else, so that a name without a thing is a mistake.
    """

    name: str
    page: str
    found: Callable[[], dict[str, str]]
    shown: Callable[[], set[str]]
    row: str
    is_exact: bool = False


def _text(page: str) -> str:
    return (ROOT / page).read_text()


def _section(page: str, title: str) -> str:
    return re.split(r"\n#+ ", _text(page).partition(f"{title}\n")[2])[0]


def _first_cells(text: str) -> set[str]:
    """Return the names in the first column of the tables of a text."""
    cells = re.findall(r"^\| ([^|]*)\|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w.*]+)`", cell)}


def public_packages() -> list[str]:
    """Return the packages whose ``__all__`` the page on support calls public."""
    row = next(line for line in _text("docs/support.md").splitlines() if "What is public" in line)
    return re.findall(r"`(rmqtools[\w.]*|spark_connector)`", row.partition("; classes of")[0])


def _public_names() -> Iterator[tuple[str, str, set[str]]]:
    """Each public name with its package and the entries of the reference that show it."""
    for package in public_packages():
        module: Any = import_module(package)
        for name in module.__all__:
            places = {f"{package}.{name}", home_of(module, name)}
            yield package, name, {"rmqtools.errors"} if name == "RocketMQError" else places


def _names() -> dict[str, str]:
    return {f"{package}.{name}": "" for package, name, _ in _public_names()}


def _names_shown() -> set[str]:
    pages = [*reference_pages().values(), _text("docs/reference/errors.md")]
    entries = {place for page in pages for place in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}
    return {f"{package}.{name}" for package, name, places in _public_names() if places & entries}


def _methods() -> dict[str, str]:
    found = {}
    for name in client_classes():
        for method, function in inspect.getmembers(getattr(aio, name), inspect.isfunction):
            if not method.startswith("_"):
                parameters = list(inspect.signature(function).parameters)[1:]
                found[f"{name}.{method}"] = f"({', '.join(parameters)})"
    return found


def _methods_shown() -> set[str]:
    documented = {name for name in _methods() if inspect.getdoc(_attribute(name))}
    pages = reference_pages()
    return {
        name for name in documented if f"::: rmqtools.aio.{name.split('.')[0]}\n" in "".join(pages.values())
    }


def _attribute(name: str) -> Any:
    owner, _, member = name.partition(".")
    return getattr(getattr(aio, owner), member)


def _configs() -> list[Any]:
    classes = [getattr(config, name) for name in config.__all__]
    return [one for one in classes if dataclasses.is_dataclass(one)]


def _settings() -> dict[str, str]:
    return {
        f"{owner.__name__}.{field.name}": f"{_default(field)} ({_types(owner)[field.name]})"
        for owner in _configs()
        for field in dataclasses.fields(owner)
    }


def _default(field: Any) -> str:
    return f" = {field.default!r}" if field.default is None or _is_plain(field.default) else ""


def _is_plain(default: object) -> bool:
    return isinstance(default, str | int | float)


def _settings_shown() -> set[str]:
    """Return the settings with a text under the field: the reference and editors show it."""
    return {
        f"{owner.__name__}.{name}"
        for owner in _configs()
        for base in owner.__mro__
        for name in _explained_fields(base)
    }


@cache
def _types(owner: type) -> dict[str, str]:
    """Return the annotations of all fields, as they are written."""
    found = [node for base in reversed(owner.__mro__) for node in _body(base)]
    return {
        node.target.id: ast.unparse(node.annotation)
        for node in found
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def _body(owner: type) -> list[ast.stmt]:
    if not dataclasses.is_dataclass(owner):
        return []
    home = inspect.getsourcefile(owner) or ""
    (tree,) = (
        node
        for node in tree_of(Path(home)).body
        if isinstance(node, ast.ClassDef) and node.name == owner.__name__
    )
    return tree.body


@cache
def _explained_fields(owner: type) -> set[str]:
    return {
        field.target.id
        for field, text in pairwise(_body(owner))
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
    }


def _options() -> dict[str, str]:
    return {option.name: f" = {option.default} ({option.kind})" for option in OPTIONS}


def _columns_shown() -> set[str]:
    """Return the columns in the table, without those that only writes have."""
    table = _text("docs/spark-jobs.md").partition("\n| column | read | write |")[2].partition("\n\n")[0]
    return _first_cells(table) - (WRITE_COLUMNS.keys() - {column.name for column in READ_COLUMNS})


def _commands() -> dict[str, str]:
    return {path: "" for path, _ in every_command()}


def _commands_shown() -> set[str]:
    page = _text("docs/commands.md")
    return {path for path in _commands() if re.search(rf"`[^`\n]*{re.escape(path)}\b", page)}


def _command_options() -> dict[str, str]:
    return {
        f"{path} {option}": f" = {parameter.default!r}" if _is_plain(parameter.default) else ""
        for path, command in every_command()
        for parameter in command.params
        if parameter.param_type_name == "option" and parameter.name != "help"
        for option in parameter.opts
        if option.startswith("--")
    }


def _command_options_shown() -> set[str]:
    """Return the options with a text of help, which the generated page shows beside the name."""
    shown = set()
    for part in describe_commands().split("\n## `")[1:]:
        path = part.partition("`")[0]
        rows = re.findall(r"^\| ([^|]+)\|[^|]*\| *[^ |\n]", part, re.MULTILINE)
        shown |= {f"{path} {name}" for row in rows for name in re.findall(r"`(--[\w-]+)`", row)}
    return shown


def _findings() -> dict[str, str]:
    return {kind.value: f" = {severity_of(kind).name}" for kind in FindingKind}


def _findings_shown() -> set[str]:
    """Return the findings of the tables: in the first cell, or in the second beside a situation."""
    section = _text("docs/troubleshooting.md").partition("\n## Findings of")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")]
    cells = [row[1] if len(row) == 5 else row[0] for row in rows]
    return {name for cell in cells for name in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", cell)}


@cache
def _trees() -> dict[Path, ast.Module]:
    return {path: tree_of(path) for path in files_of(*PACKAGES)}


@cache
def _events() -> dict[str, str]:
    """Return the events of all loggers, and those that a caller or a condition chooses as ``event``."""
    nodes = [node for tree in _trees().values() for node in ast.walk(tree)]
    logged = [node for node in nodes if isinstance(node, ast.Call) and node.args and _is_logging(node.func)]
    levels: dict[str, set[str]] = {}
    for call in logged:
        for name in _texts([call.args[0]]):
            levels.setdefault(name, set()).add(ast.unparse(call.func).removeprefix("log."))
    given = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "event"]
    chosen = [
        node.value
        for node in nodes
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "event"
    ]
    names = sorted(levels.keys() | _texts([*given, *chosen]))
    return {
        name: f" = {', '.join(sorted(levels[name]))}" if name in levels else ""
        for name in names
        if re.fullmatch(r"[a-z]+(_[a-z]+)+", name)
    }


def _events_shown() -> set[str]:
    return _first_cells(_section("docs/troubleshooting.md", "## Log events")) | _first_cells(
        _text("docs/logging.md").partition("## All events")[2]
    )


def _is_logging(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr in _LEVELS
        and ast.unparse(function.value) == "log"
    )


def _texts(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        part.value
        for node in nodes
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def _metrics() -> dict[str, str]:
    texts = _texts(_trees()[ROOT / file] for file in _METRICS)
    return dict.fromkeys(sorted(filter(_METRIC_NAME.fullmatch, texts)), "")


def _metrics_shown() -> set[str]:
    """Return the names in the tables; a name may be short for its neighbour's: ``rocketmq_a_b``, ``…_c``."""
    shown: set[str] = set()
    for cell in re.findall(r"^\| ([^|]*)\|", _text("docs/observe.md"), re.MULTILINE):
        names = re.findall(r"`([\w.…]+)`", cell)
        stems = ["_".join(name.split("_")[:2]) for name in names[:1]]
        shown |= {name.replace("…", stem) for name in names for stem in stems}
    return set(filter(_METRIC_NAME.fullmatch, shown))


def _errors() -> dict[str, str]:
    classes = [one for one in vars(errors).values() if inspect.isclass(one)]
    return {
        one.__name__: f"({', '.join(base.__name__ for base in one.__bases__)})"
        for one in classes
        if issubclass(one, errors.RocketMQError)
    }


def _errors_shown() -> set[str]:
    headings = re.findall(r"^## (\w+Error)$", _text("docs/troubleshooting.md"), re.MULTILINE)
    return {*headings, "RocketMQError"}  # the root of the tree, which is never raised itself


def _exit_codes() -> dict[str, str]:
    names = {str(code.value): f" = {code.name}" for code in ExitCode}
    return dict(sorted((dict.fromkeys(_SIGNALS, "") | names).items(), key=lambda one: int(one[0])))


def _exit_codes_shown() -> set[str]:
    cells = re.findall(r"^\| ([\d, ]+) \|", _section("docs/commands.md", "## Exit codes"), re.MULTILINE)
    return {code for cell in cells for code in cell.split(", ")}


KINDS: Final = (
    Kind("name", "tools/reference_pages.py", _names, _names_shown, "_SUBJECTS: a page that has {}"),
    Kind("method", "rmqtools/engine", _methods, _methods_shown, "a docstring of {}"),
    Kind("setting", "rmqtools/config", _settings, _settings_shown, 'a text """…""" under the field {}'),
    Kind(
        "option",
        "spark_connector/OPTIONS.md",
        _options,
        lambda: _first_cells(_text("spark_connector/OPTIONS.md")),
        "run .venv/bin/python -m tools.surface --write",
    ),
    Kind(
        "column",
        "docs/spark-jobs.md",
        lambda: {column.name: f" = {column.kind.name}" for column in READ_COLUMNS},
        _columns_shown,
        "| `{}` | its type | |",
        is_exact=True,
    ),
    Kind("command", "docs/commands.md", _commands, _commands_shown, "| the task, in words | `{} …` |"),
    Kind("command-option", "rmqtools/cli", _command_options, _command_options_shown, "help=… of {}"),
    Kind(
        "finding",
        "docs/troubleshooting.md",
        _findings,
        _findings_shown,
        "| `{}` | the meaning | the remedy |",
        is_exact=True,
    ),
    Kind(
        "event",
        "docs/logging.md, or docs/troubleshooting.md if it has a remedy",
        _events,
        _events_shown,
        "| `{}` | the meaning |",
        is_exact=True,
    ),
    Kind(
        "metric",
        "docs/observe.md",
        _metrics,
        _metrics_shown,
        "| `{}` | the kind | the meaning |",
        is_exact=True,
    ),
    Kind("error", "docs/troubleshooting.md", _errors, _errors_shown, "## {}", is_exact=True),
    Kind(
        "exit-code", "docs/commands.md", _exit_codes, _exit_codes_shown, "| {} | the meaning |", is_exact=True
    ),
)


def missing(kind: Kind) -> list[str]:
    """Return a line for each thing that its page lacks: what it is, and what to add where."""
    lacking = sorted(kind.found().keys() - kind.shown())
    return [
        f"{kind.name} {name} is not on its page. Add to {kind.page}: {kind.row.format(name)}"
        for name in lacking
    ]


def invented(kind: Kind) -> list[str]:
    """Return a line for each name of an exact page that no thing has."""
    names = sorted(kind.shown() - kind.found().keys()) if kind.is_exact else []
    return [f"{kind.name} {name} does not exist. Remove or correct it in {kind.page}" for name in names]


def untested(kind: Kind) -> list[str]:
    """Return a line for each thing whose name no test has; a finding's may be its constant.

    Log events are left out: many are seen by their effect.
    """
    return [
        f"{kind.name} {name} is in no test. Write one that has: {_tested_by(kind, name)}"
        for name in sorted(kind.found() if kind.name != "event" else ())
        if not _is_tested(_tested_by(kind, name)) and not _is_alias(kind, name)
    ]


def _tested_by(kind: Kind, name: str) -> str:
    """Return the words that a test must have: all of a command, because other commands share its last one."""
    return name.removeprefix("rmqtools ") if kind.name == "command" else _last(name)


def _is_tested(words: str) -> bool:
    """Return whether tests have a word, or several in a row, as in ``run("topic", "list")``."""
    if " " not in words:
        return not _words_of_tests().isdisjoint({words, words.upper()})
    in_a_row = re.compile(r"\b" + r"[\s\"',]+".join(map(re.escape, words.split())) + r"\b")
    return any(in_a_row.search(text) for text in _texts_of_tests())


@cache
def _texts_of_tests() -> list[str]:
    return [path.read_text() for path in (ROOT / "tests").rglob("*.py")]


@cache
def _words_of_tests() -> set[str]:
    return {word for text in _texts_of_tests() for word in re.findall(r"--[\w-]+|\w+", text)}


def _last(name: str) -> str:
    return re.split(r"[. ]", name.removesuffix(".*"))[-1]


def _is_alias(kind: Kind, name: str) -> bool:
    """Return whether a public name only names a type for annotations."""
    package, _, member = name.rpartition(".")
    return kind.name == "name" and not isinstance(
        getattr(import_module(package), member), type | FunctionType
    )


def surface() -> dict[str, str]:
    """Return the public things of now, as ``kind name``, each with its default, type and so on."""
    return {f"{kind.name} {name}": more for kind in KINDS for name, more in kind.found().items()}


def released() -> dict[str, str]:
    """Return the public things of the last release."""
    lines = RELEASED.read_text().splitlines()[1:]
    return dict(re.fullmatch(r"([^(=]*[^(= ])(.*)", line).groups() for line in lines)  # type: ignore[misc,union-attr]


def _seal(lines: str) -> str:
    """Return the first line of the released surface, which holds the digest of the others."""
    return (
        f"# Written by make release. Digest of the lines below: {sha256(lines.encode()).hexdigest()[:16]}\n"
    )


def handwritten(text: str) -> list[str]:
    """Return a line if the text of the released surface is not as :func:`main` wrote it."""
    head, _, lines = text.partition("\n")
    where = RELEASED.relative_to(ROOT)
    remedy = f"run git checkout {where}, and describe the change in CHANGELOG.md, under Unreleased"
    if f"{head}\n" == _seal(lines):
        return []
    return [f"{where} was changed by hand. Only make release writes it: {remedy}"]


def unannounced(changelog: str, before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return a line for each change of the surface that no point of the changelog's "Unreleased" names."""
    section = changelog.partition("\n## Unreleased\n")[2].partition("\n## ")[0]
    points = [" ".join(point.split()) for point in section.split("\n- ")]
    changes = [item for item in sorted(before.keys() | now.keys()) if before.get(item) != now.get(item)]
    whole = {_owned_by(item) for item in changes if item not in before or item not in now}
    return [
        f"{_verb(item, before, now)} {item}. "
        f"Add to CHANGELOG.md, under Unreleased, a line that has: {' '.join(words)}"
        for item in changes
        for words in [_words(item, before, now)]
        if _owner(item) not in whole
        if not any(all(_has(point, word) for word in words) for point in points)
    ]


def _owner(item: str) -> str:
    """Return what a thing belongs to: a class, a command; "" for what stands alone."""
    kind, _, name = item.partition(" ")
    if kind == "command-option":
        return name.rpartition(" ")[0]
    return name.rpartition(".")[0] if kind in ("method", "setting") else ""


def _owned_by(item: str) -> str:
    """Return the owner that a new or removed thing is: a line for it is one for all that belongs to it."""
    kind, _, name = item.partition(" ")
    return {"command": name, "name": name.rpartition(".")[2]}.get(kind, "-")


def _verb(item: str, before: dict[str, str], now: dict[str, str]) -> str:
    return "removed:" if item not in now else "changed:" if item in before else "new:"


def _has(point: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", point) is not None


def _words(item: str, before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return what the line of a change must have: the thing's name, and parameters that came or went."""
    kind, _, name = item.partition(" ")
    if kind in ("name", "setting"):
        return [name.rpartition(".")[2]]
    if kind == "command-option":
        return name.removeprefix("rmqtools ").rsplit(" ", 1)
    if kind == "exit-code":
        return [f"exit code {name}"]
    if kind != "method":
        return [name.removeprefix("rmqtools ")]
    signatures = [set(re.findall(r"\w+", side[item])) for side in (before, now) if item in side]
    changed = signatures[0] ^ signatures[1] if len(signatures) == 2 else set()
    return [name.rpartition(".")[2], *sorted(changed)]


def unused(settings: Iterable[str]) -> list[str]:
    """Return a line for each setting that no module outside of its package reads."""
    home = ROOT / "rmqtools" / "config"
    trees = [tree for path, tree in _trees().items() if home not in path.parents]
    read = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return [
        f"setting {name} is never used. Use it in rmqtools/engine, or remove the field"
        for name in settings
        if name.rpartition(".")[2] not in read
    ]


def main(arguments: list[str]) -> int:
    """Print what is missing; return 1 if anything is."""
    if arguments == ["--release"]:
        lines = "".join(f"{item}{more}\n" for item, more in sorted(surface().items()))
        RELEASED.write_text(_seal(lines) + lines)
        return 0
    if arguments == ["--write"]:
        (ROOT / "spark_connector" / "OPTIONS.md").write_text(describe_options())
        return 0
    wrong = [line for kind in KINDS for line in (*missing(kind), *invented(kind), *untested(kind))]
    wrong += unused(_settings())
    wrong += handwritten(RELEASED.read_text())
    wrong += unannounced(_text("CHANGELOG.md"), released(), surface())
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
