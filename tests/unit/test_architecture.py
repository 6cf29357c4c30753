"""The layers of rmqtools/DESIGN.md, read from the imports themselves."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("rmqtools", "spark_connector")

_BOTTOM = {"clock", "log", "model", "errors"}
_PUBLIC = {
    "rmqtools",
    "aio",
    "sync",
    "allocate",
    "arrow",
    "cluster",
    "config",
    "group",
    "errors",
    "log",
    "model",
    "clock",
    "select",
}
MAY_IMPORT = {
    "clock": set(),
    "log": set(),
    "model": {"model"},
    "errors": {"model"},
    "config": {"config", "errors", "model"},
    "policy": {"policy", "errors", "model"},
    "protocol": {"protocol", "errors", "model"},
    "allocate": {"policy", "config", "errors", "model"},
    "group": {"policy", "model"},
    "engine": _BOTTOM | {"engine", "policy", "protocol", "config"},
    "aio": {"aio", "engine", "policy", "config", "errors", "model"},
    "sync": {"sync", "aio", "engine", "policy", "config", "errors", "model", "rmqtools"},
    "rmqtools": {"sync", "config", "errors", "model", "rmqtools"},
    "select": {"engine", "policy"},
    "arrow": _PUBLIC | {"arrow", "policy", "protocol"},
    "cluster": _PUBLIC | {"cluster"},
    "cli": _PUBLIC | {"cli"},
    "spark_connector": _PUBLIC | {"spark_connector"},
}
PURE = ("model", "errors", "config", "policy", "protocol")
IMPURE_MODULES = {"asyncio", "socket", "threading", "time", "random", "concurrent", "selectors", "subprocess"}


@cache
def sources() -> dict[str, ast.Module]:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {module_name(path): ast.parse(path.read_text()) for path in files}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(module: str) -> str:
    first, *rest = module.split(".")
    name = rest[0] if first == "rmqtools" and rest else first
    return "config" if name == "config_consumer" else name


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
    assert {module: upward for module in import_graph() if (upward := upward_arrows(module))} == {}


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
    assert {name: lines for name, lines in function_lengths().items() if lines > 50} == {}


def test_nine_functions_in_ten_have_at_most_25_lines() -> None:
    lengths = sorted(function_lengths().values())

    assert lengths[len(lengths) * 9 // 10] <= 25


@pytest.mark.parametrize("suffix", ["py", "sh"])
def test_no_file_is_longer_than_400_lines_or_600_for_code_tables(suffix: str) -> None:
    places = [ROOT / name for name in ("rmqtools", "spark_connector", "docker", "tests", "examples")]
    lengths = {
        p.relative_to(ROOT): len(p.read_text().splitlines()) for d in places for p in d.rglob(f"*.{suffix}")
    }
    code_tables = {Path("rmqtools/model/codes.py"): 600}

    assert {path: n for path, n in lengths.items() if n > code_tables.get(path, 400)} == {}
