"""The layers of rmqtools/DESIGN.md, read from the imports themselves."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from itertools import takewhile
from pathlib import Path

import pytest

from tools.sources import PACKAGES, ROOT, files_of, tree_of

pytestmark = pytest.mark.process  # it reads all sources, for seconds


_LEAVES = {
    "compiled",
    "clock",
    "lazy_names",
    "log",
    "number_of",
    "safe_file",
    "unknown_name",
    "version",
    "visible_text",
}
_BOTTOM = _LEAVES | {"model", "errors", "observer", "name_server_list"}
_PUBLIC = {
    "rmqtools",
    "aio",
    "sync",
    "allocate",
    "broker",
    "arrow",
    "cluster",
    "compatibility",
    "compiled",
    "config",
    "group",
    "errors",
    "log",
    "model",
    "number_of",
    "once",
    "otel",
    "clock",
    "plot",
    "plug_in",
    "safe_file",
    "select",
    "unknown_name",
    "visible_text",
    "name_server_list",
}
MAY_IMPORT = {
    "compiled": {"compiled"},
    "clock": set(),
    "lazy_names": set(),
    "log": {"visible_text"},
    "visible_text": set(),
    "number_of": set(),
    "safe_file": set(),
    "unknown_name": set(),
    "version": set(),
    "model": {"model", "compiled"},
    "errors": {"model"},
    "name_server_list": {"errors"},
    "observer": {"model"},
    "config": {"config", "lazy_names", "errors", "model", "unknown_name"},
    "policy": {"policy", "errors", "model", "compiled", "number_of", "unknown_name"},
    "protocol": {"protocol", "errors", "model", "compiled"},
    "plug_in": {"config", "errors", "unknown_name"},
    "allocate": {"plug_in", "policy", "errors"},
    "broker": {"policy", "model"},
    "group": {"policy", "model"},
    "compatibility": {"policy", "model"},
    "plot": {"model", "visible_text"},
    "engine": _BOTTOM | {"engine", "policy", "protocol", "config"},
    "aio": {"engine", "policy", "lazy_names"},
    "sync": {"sync", "aio", "engine", "policy", "config", "errors", "log", "model", "rmqtools", "lazy_names"},
    "rmqtools": {"sync", "config", "errors", "model", "rmqtools", "version", "lazy_names"},
    "select": {"model", "policy"},
    "once": {"once", "model", "clock"},
    "otel": {"otel", "observer", "errors", "model", "clock"},
    "arrow": _PUBLIC | {"arrow", "policy", "protocol", "lazy_names"},
    "compat": _PUBLIC | {"compat"},
    "cluster": _PUBLIC | {"cluster"},
    "testing": _PUBLIC | {"testing", "policy", "protocol"},
    "cli": _PUBLIC | {"cli"},
    "__main__": set(),  # only the program outside the package
    "spark_connector": _PUBLIC | {"spark_connector"},
}
ROOMS = {  # room -> the rooms of its package that it may import from; "" is the package's own modules
    "rmqtools.engine": {
        "": set(),
        "connection": {""},
        "group": {"connection"},
        "reading": {"", "connection"},
        "admin": {"", "connection", "group", "reading"},
        "producer": {"", "connection"},
        "consumer": {"", "connection", "admin", "group", "producer", "reading"},
        "exact": {"", "connection", "admin", "group", "producer", "reading"},
    },
    "rmqtools.protocol": {"headers": set(), "messages": {"headers"}, "wire": {"headers"}},
    "rmqtools.policy": {"allocate": set(), "endpoint": set(), "": {"allocate", "endpoint"}},
    "rmqtools.testing": {"fake": set(), "": {"fake"}},
    "spark_connector": {
        "options": set(),
        "worker": set(),
        "read": {"options", "worker"},
        "write": {"options", "worker"},
        "progress": {"read"},
        "": {"options", "progress", "read", "worker", "write"},
    },
}
UNMIRRORED = {  # a test file with a path of its own, and why
    "tests/unit/test_architecture.py": "it is about all packages",
    "tests/unit/test_pre_commit.py": "it is about the hooks before a commit",
    "tests/unit/tools/test_lock.py": "it is about requirements.lock",
    "tests/unit/test_claims.py": "it is about README.md, CONTRIBUTING.md, pyproject.toml and a page of docs",
    "tests/unit/test_public_names.py": "it is about all packages",
    "tests/unit/test_mistakes.py": "it is about what users call, of all packages",
    "tests/unit/cli/test_commands.py": "it runs the commands of all files",
    "tests/unit/cli/test_hostile_text.py": "it runs the commands of all files",
    "tests/unit/cli/test_refusals.py": "it runs the commands of all files",
    "tests/unit/cluster/test_no_ha.py": "it is about a folder of Java classes",
    "tests/unit/contract/test_vectors.py": "it runs the adapters of tests/contract",
    "tests/unit/support/test_docker_layout.py": "it is about tests/support",
    "tests/unit/support/test_load.py": "it is about tests/support",
    "tests/unit/support/test_patient_clients.py": "it is about tests/support",
    "tests/unit/support/test_resting.py": "it is about tests/support",
    "tests/unit/support/test_skipping_loop.py": "it is about tests/support",
    "tests/unit/test_plain_english.py": "it is about the words of all packages",
    "tests/unit/support/test_versions_table.py": "it is about tests/versions",
}
PURE = ("model", "errors", "config", "policy", "protocol")
IMPURE_MODULES = {"asyncio", "socket", "threading", "time", "random", "concurrent", "selectors", "subprocess"}


@cache
def sources() -> dict[str, ast.Module]:
    return {module_name(path): tree_of(path) for path in files_of(*PACKAGES)}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(module: str) -> str:
    first, *rest = module.split(".")
    return rest[0] if first == "rmqtools" and rest else first


def imports(tree: ast.Module, known: set[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in names}
    return found


@cache
def import_graph() -> dict[str, set[str]]:
    trees = sources()
    return {module: imports(tree, set(trees)) for module, tree in trees.items()}


def upward_arrows(module: str) -> set[str]:
    ours = {layer(name) for name in import_graph()[module] if name.split(".")[0] in PACKAGES}
    return ours - MAY_IMPORT[layer(module)]


def test_a_module_imports_only_from_its_own_layer_and_below() -> None:
    wrong = {module: upward for module in import_graph() if (upward := upward_arrows(module))}
    assert not wrong, f"imports that point up, see rmqtools/DESIGN.md and MAY_IMPORT in this file: {wrong}"


DESIGN = ROOT / "rmqtools/DESIGN.md"


def test_the_picture_has_every_layer() -> None:
    picture = set(re.findall(r"\w+", DESIGN.read_text().partition("```")[2].partition("```")[0]))

    assert MAY_IMPORT.keys() - {"__main__"} - picture == set()


@cache
def defined_names() -> set[str]:
    """Modules, classes, functions and members of classes: their whole names, and all ends of these."""
    found: set[str] = set()
    for module, tree in sources().items():
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        members = {f"{each.name}.{one}" for each in classes for one in names_in(each)}
        found |= {module} | {f"{module}.{one}" for one in names_in(tree) | members}
    whole = [name.split(".") for name in found]
    return {".".join(parts[begin:]) for parts in whole for begin in range(len(parts))}


def names_in(scope: ast.Module | ast.ClassDef) -> set[str]:
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    fields = {
        node.target.id
        for node in scope.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return {node.name for node in scope.body if isinstance(node, named)} | fields


def test_design_names_what_exists() -> None:
    quoted = set(re.findall(r"`(\w+(?:\.\w+)+)`", DESIGN.read_text()))
    rooms = {name.rpartition(".")[2] for name in sources()} | set(MAY_IMPORT)
    ours = {name for name in quoted if name[0].isupper() or name.partition(".")[0] in rooms}

    assert len(ours) > 80
    wrong = ours - defined_names()
    assert not wrong, f"rmqtools/DESIGN.md names what is not there: {sorted(wrong)}"


def room(package: str, module: str) -> str:
    """The room of a package that a module is in; "" for the package's own modules."""
    rest = module.removeprefix(package).lstrip(".").split(".")
    return rest[0] if rest[0] in ROOMS[package] else ""


def room_arrows(package: str) -> dict[str, set[str]]:
    """Which other rooms of a package the modules of each room import from."""
    inside = {name for name in import_graph() if name == package or name.startswith(f"{package}.")}
    arrows: dict[str, set[str]] = {}
    for module in inside:
        here = room(package, module)
        arrows.setdefault(here, set()).update(
            {room(package, name) for name in import_graph()[module] & inside} - {here}
        )
    return arrows


@pytest.mark.parametrize("package", ROOMS)
def test_a_room_imports_only_from_the_rooms_below_it(package: str) -> None:
    too_far = {name: found - ROOMS[package].get(name, set()) for name, found in room_arrows(package).items()}

    wrong = {name: rooms for name, rooms in too_far.items() if rooms}
    assert not wrong, f"imports from rooms that are not below, see ROOMS in this file: {wrong}"


@pytest.mark.parametrize("package", ROOMS)
def test_the_order_of_rooms_has_no_circle(package: str) -> None:
    assert list(TopologicalSorter(ROOMS[package]).static_order())


@pytest.mark.parametrize("package", ROOMS)
def test_every_folder_of_a_package_with_rooms_is_a_room(package: str) -> None:
    folders = {path.parent.name for path in ROOT.joinpath(*package.split(".")).glob("*/__init__.py")}

    assert folders == ROOMS[package].keys() - {""}


def is_mirrored(test: Path) -> bool:
    """Return whether a unit test stands where the module does that its name begins with."""
    parts = test.relative_to(ROOT / "tests/unit").parent.parts
    home = ROOT.joinpath(*parts) if parts[:1] in (("spark_connector",), ("examples",), ("tools",)) else None
    home = home or ROOT.joinpath("rmqtools", *parts)
    name = test.stem.removeprefix("test_")
    modules = [path.stem for path in home.glob("*.py") if path.stem != "__init__"] + [home.name]
    return any(name == module or name.startswith(f"{module}_") for module in modules)


def test_unit_tests_mirror_the_packages() -> None:
    strangers = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests/unit").rglob("test_*.py")
        if not is_mirrored(path)
    }

    misplaced, gone = strangers - UNMIRRORED.keys(), UNMIRRORED.keys() - strangers
    assert not misplaced, (
        f"{sorted(misplaced)}: tests of rmqtools/a/b.py are tests/unit/a/test_b.py or test_b_<subject>.py: "
        "git mv them there, or name them in UNMIRRORED of this file"
    )
    assert not gone, f"take {sorted(gone)} out of UNMIRRORED of this file"


def test_no_import_cycle() -> None:
    inside = {
        module: {name for name in names if name in import_graph()} for module, names in import_graph().items()
    }

    assert list(TopologicalSorter(inside).static_order())


def test_nothing_below_the_engine_touches_sockets_threads_time_or_chance() -> None:
    pure = [module for module in import_graph() if layer(module) in PURE]
    touched = {
        module: {name.split(".")[0] for name in import_graph()[module]} & IMPURE_MODULES for module in pure
    }

    assert {module: names for module, names in touched.items() if names} == {}


def test_nothing_below_the_engine_imports_by_name() -> None:
    assert {
        module for module in import_graph() if layer(module) in PURE and "importlib" in import_graph()[module]
    } == set()


def test_only_the_clock_reads_time() -> None:
    assert {module for module, names in import_graph().items() if "time" in names} == {"rmqtools.clock"}


@pytest.mark.parametrize("library", ["numpy", "pyarrow"])
def test_arrow_libraries_are_imported_in_arrow_and_spark_connector_only(library: str) -> None:
    users = {
        layer(m)
        for m, names in import_graph().items()
        if any(name.split(".")[0] == library for name in names)
    }

    assert users <= {"arrow", "spark_connector"}


def test_rmqtools_never_imports_pyspark() -> None:
    users = {
        m for m, names in import_graph().items() if any(name.split(".")[0] == "pyspark" for name in names)
    }

    assert {module.split(".")[0] for module in users} <= {"spark_connector"}


@cache
def function_lengths() -> dict[str, int]:
    return {
        f"{module}.{node.name}": (node.end_lineno or 0) - node.lineno + 1 - docstring_lines(node)
        for module, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return (first.end_lineno or 0) - first.lineno + 1 if is_text else 0


def test_no_function_is_longer_than_50_lines() -> None:
    long = {name: lines for name, lines in function_lengths().items() if lines > 50}
    assert not long, f"split these by subject, see Rules in CONTRIBUTING.md: {long}"


def test_nine_functions_in_ten_have_at_most_25_lines() -> None:
    lengths = sorted(function_lengths().values())

    assert lengths[len(lengths) * 9 // 10] <= 25


def head(path: Path) -> str:
    """A file's docstring, or its first comment."""
    text = path.read_text()
    if path.suffix == ".py":
        return ast.get_docstring(tree_of(path)) or ""
    if path.suffix in (".c", ".h"):
        return text.partition("*/")[0]
    return "\n".join(takewhile(lambda line: line.startswith("#"), text.splitlines()))


@pytest.mark.parametrize("suffix", ["py", "sh", "c", "h"])
def test_a_file_above_500_lines_says_in_its_head_why_it_is_one_file(suffix: str) -> None:
    places = [ROOT / name for name in (*PACKAGES, "docker", "tests", "examples", "tools")]
    large = {
        path
        for place in places
        for path in place.rglob(f"*.{suffix}")
        if len(path.read_text().splitlines()) > 500
    }

    silent = [str(path) for path in large if "One file because " not in " ".join(head(path).split())]
    assert not silent, f"split by subject, or begin a sentence of the head with 'One file because': {silent}"
