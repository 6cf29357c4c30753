"""Prints the result of Spark's discovery of ``format("rocketmq")`` on this machine, and its problems.

    python -m spark_connector.doctor [--name-server HOST:PORT --topic TOPIC] [--compile]

Starts a local session as ``SparkSession.builder.getOrCreate()`` would. Exit code 0: no problem; 1: there are
problems, and the lines marked ``!!`` describe them with remedies. ``--compile`` only compiles PySpark, once:
see :mod:`spark_connector.worker.pyspark_archive`.
"""

import argparse
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

from rmqtools import compiled
from rmqtools.errors import ConfigError
from rmqtools.visible_text import visible_lines
from spark_connector import register
from spark_connector.worker.interpreter import (
    PACKAGES,
    Interpreter,
    inspect_python,
    missing_text,
    worker_path,
)
from spark_connector.worker.pyspark_archive import compile_archive, find_archive, is_compiled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ARCHIVE: Final = "PySpark's archive"
_NO_BYTECODE: Final = "no bytecode; Spark's Python processes start faster after: rmqtools spark compile"
_UNIX_SOCKETS: Final = "spark.python.unix.domain.socket.enabled"

Line = tuple[bool, str, str]
"""Whether the check passed, its name, and the finding with the remedy."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print all lines; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m spark_connector.doctor", description=__doc__)
    parser.add_argument(
        "--name-server", help="read one message of --topic from the cluster of this host:port"
    )
    parser.add_argument("--topic", help="the topic to read a message of")
    parser.add_argument("--compile", action="store_true", help="compile PySpark in its archive, and end")
    given = parser.parse_args(arguments)
    if (given.name_server is None) != (given.topic is None):
        parser.error("--name-server and --topic go together")
    well = True
    lines = [_archive_line(compiles=True)] if given.compile else _lines(given.name_server, given.topic)
    for is_well, what, found in lines:
        print(f"{'ok' if is_well else '!!'}  {what + ':':<20} {visible_lines(found)}", flush=True)
        well = well and is_well
    return 0 if well else 1


def _lines(name_server: str | None, topic: str | None) -> Iterator[Line]:
    yield True, "driver's Python", f"{sys.executable} ({sys.version.split()[0]})"
    yield from map(_package_line, PACKAGES)
    yield True, "compiled module", compiled.state()
    spark = _session()
    try:
        yield from _python_lines(spark)
        yield _socket_line(spark)
        yield _archive_line()
        is_found = yield from _checked("discovery", "the format is found", lambda: _load(spark, {}))
        if not is_found:
            yield from _checked("register", "the format is known once registered", lambda: register(spark))
        if name_server is not None and topic is not None:
            options = {"nameServer": name_server, "topic": topic}
            yield from _checked("a read", "a message was read", lambda: _load(spark, options).take(1))
    finally:
        spark.stop()


def _archive_line(*, compiles: bool = False) -> Line:
    """Return whether PySpark's archive has bytecode, which ``compiles`` adds. Without it, all works too."""
    try:
        archive = find_archive()
        if compiles and not is_compiled(archive):
            compile_archive(archive)
        text = f"{archive} has bytecode" if is_compiled(archive) else _NO_BYTECODE
    except ConfigError as error:
        return not compiles, _ARCHIVE, str(error)
    return True, _ARCHIVE, text


def _session() -> "SparkSession":
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("spark_connector.doctor").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _package_line(name: str) -> Line:
    if (found := _version(name)) is not None:
        return True, name, found
    return False, name, "not installed beside the driver's Python: pip install rmqtools[spark]"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _python_lines(spark: "SparkSession") -> Iterator[Line]:
    name = spark.sparkContext.pythonExec
    found = inspect_python(name, path=worker_path(spark), import_neighbours=True)
    if found is None:
        yield (
            False,
            "workers' Python",
            f"{name!r} does not start here: set PYSPARK_PYTHON to {sys.executable}",
        )
        return
    yield (
        not found.missing,
        "workers' Python",
        missing_text(found) if found.missing else (f"{found.path} ({found.version})"),
    )
    if found.version.split(".")[:2] != sys.version.split()[0].split(".")[:2]:
        yield False, "versions", f"driver and workers differ: set PYSPARK_PYTHON to {sys.executable}"
    yield _versions_line(found)
    for module, error in found.broken.items():
        yield (
            False,
            module,
            f"{error}: it hides every data source from discovery; remove it, or use register()",
        )


def _versions_line(found: Interpreter) -> Line:
    """Return the workers' packages. Driver and workers exchange objects: both need the same rmqtools."""
    here, there = _version("rmqtools"), found.versions.get("rmqtools")
    if here is not None and there is not None and here != there:
        text = f"rmqtools {there}, the driver has {here}: install the same version for both"
        return False, "workers' packages", text
    text = ", ".join(f"{name} {number}" for name, number in found.versions.items())
    return True, "workers' packages", text or "files on the path, without versions"


def _socket_line(spark: "SparkSession") -> Line:
    is_on = spark.sparkContext.getConf().get(_UNIX_SOCKETS, "false") == "true"
    text = "on" if is_on else f"off; streams start small tasks faster with {_UNIX_SOCKETS}=true"
    return True, "unix sockets", text


def _checked(what: str, well: str, action: Callable[[], Any]) -> Generator[Line, None, bool]:
    """Run an action and report the outcome as one line. Returns whether it succeeded."""
    try:
        action()
    except Exception as error:  # noqa: BLE001  # any error of Spark is shown
        yield False, what, next((line for line in str(error).splitlines() if line.strip()), repr(error))
        return False
    yield True, what, well
    return True


def _load(spark: "SparkSession", options: dict[str, str]) -> Any:
    """Load the format. Without options, the source's own error proves that it was found."""
    try:
        return spark.read.format("rocketmq").options(**options).load()
    except Exception as error:
        if options or "nameServer" not in str(error):
            raise
        return None


if __name__ == "__main__":
    sys.exit(main())
