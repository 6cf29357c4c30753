"""Checks whether the Python that Spark starts for data sources can run this one."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Final

from rmqtools.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED: Final = ("rmqtools", "spark_connector", "pyarrow")
PACKAGES: Final = ("pyspark", "pyarrow", "rmqtools")
_SECONDS: Final = 60.0  # importing neighbours may load large libraries
_LOOK: Final = """
import importlib, importlib.metadata, importlib.util, json, pkgutil, sys
needed, packages, import_neighbours = json.loads(sys.argv[1])
versions = {}
for name in packages:
    try:
        versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
missing = [name for name in needed if importlib.util.find_spec(name) is None]
broken = {}
for module in pkgutil.iter_modules():
    if import_neighbours and module.name.startswith("pyspark_"):
        try:
            importlib.import_module(module.name)
        except BaseException as error:
            broken[module.name] = f"{type(error).__name__}: {error}"
print(json.dumps([sys.executable, sys.version.split()[0], missing, versions, broken]))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python interpreter as Spark starts it.

    Attributes:
        name: Spark's name for it.
        path: path of its executable.
        version: its version number.
        missing: modules of :data:`NEEDED` that it lacks.
        versions: versions of :data:`PACKAGES`; packages that are only files on its path have none.
        broken: modules ``pyspark_*`` that cannot be imported, with their errors. A single one hides all data
            sources from discovery.
    """

    name: str
    path: str
    version: str
    missing: tuple[str, ...]
    versions: dict[str, str]
    broken: dict[str, str]


def inspect_python(name: str, *, path: str = "", import_neighbours: bool = False) -> Interpreter | None:
    """Inspect a Python as Spark would start it on this machine; None: it cannot be started here.

    Args:
        name: a file or a command.
        path: its ``PYTHONPATH``.
        import_neighbours: whether to import all modules ``pyspark_*``, as discovery does.
    """
    if which(name) is None:
        return None
    asked = json.dumps([NEEDED, PACKAGES, import_neighbours])
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("PYTHONHOME", None)
    try:
        done = subprocess.run(
            [name, "-c", _LOOK, asked],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=_SECONDS,
        )
        found, version, missing, versions, broken = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
    return Interpreter(name, found, version, tuple(missing), versions, broken)


def worker_path(spark: "SparkSession") -> str:
    """Return the ``PYTHONPATH`` of Spark's Python processes here, with files added to the session."""
    from pyspark import SparkFiles

    context = spark.sparkContext
    added = [str(Path(SparkFiles.getRootDirectory(), name)) for name in context._python_includes or ()]
    pyspark_home = Path(sys.modules["pyspark"].__file__ or "").parent.parent
    return os.pathsep.join([*added, os.environ.get("PYTHONPATH", ""), str(pyspark_home)]).strip(os.pathsep)


def check_worker_python(spark: "SparkSession") -> None:
    """Refuse a session whose Python processes cannot run this data source.

    Checks nothing if the session does not know its Python (Spark Connect), or it is on another machine.

    Raises:
        ConfigError: the Python lacks a module; names both Pythons and the remedy.
    """
    from pyspark.errors import PySparkException

    try:
        name = spark.sparkContext.pythonExec
        path = worker_path(spark)
    except PySparkException:
        return
    if which(name) == sys.executable:
        return
    if (found := inspect_python(name, path=path)) is not None and found.missing:
        raise ConfigError(missing_text(found))


def missing_text(found: Interpreter) -> str:
    """Text about a worker's missing modules, and how to make Spark use the driver's Python."""
    return (
        f"Spark starts {found.name!r} ({found.path}, Python {found.version}) for data sources, which has no "
        f"module {', '.join(found.missing)}; the driver runs {sys.executable}: activate its environment, or "
        f"set os.environ['PYSPARK_PYTHON'] = {sys.executable!r} before the session is made"
    )
