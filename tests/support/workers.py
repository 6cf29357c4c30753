"""How the tests are shared out among the processes of a parallel run (pytest-xdist).

The tests of a module run in one process, since they share fixtures. So do all tests on the Docker cluster: a
checkout has one. All others on Spark are two groups, unless long tests run: each session of Spark takes half
a minute of work. The longest groups start first.
"""

import os
import signal
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling  # type: ignore[import-untyped]  # has no types

from tests.support.docker_project import CHECKOUT, DockerProject

_DOCKER, _SPARK = "docker", ("spark 1", "spark 2")
_ORDER = ("spark", "measure", "interop", "integration", "behaviour")


class ByModule(LoadScopeScheduling):
    """Hands out whole modules; those on the Docker cluster as one group, short ones on Spark as two."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.split("::")[0]
        if is_on_docker(CHECKOUT / module):
            return _DOCKER
        shares_spark = "not slow" in self.config.getoption("markexpr") and module.startswith("tests/spark/")
        return _SPARK[_spark_modules().index(module) % 2] if shares_spark else module


@cache
def _spark_modules() -> tuple[str, ...]:
    """The modules below ``tests/spark``, relative to the checkout, in the order of their names."""
    return tuple(
        sorted(str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "tests/spark").glob("test_*.py"))
    )


@cache
def is_on_docker(module: Path) -> bool:
    """Return whether a module's tests are marked ``docker``."""
    return "pytest.mark.docker" in module.read_text()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByModule:
    """Share out by module, whatever ``--dist`` says."""
    return ByModule(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Let SIGTERM end a parallel run like Ctrl-C does, so that the processes are told."""
    if _shares_out(config):
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes run, put the longest groups first.

    Raises:
        UsageError: a test on the Docker cluster is not marked.
    """
    for item in items:
        if "docker_project" in getattr(item, "fixturenames", ()) and not is_on_docker(item.path):
            raise pytest.UsageError(f"{item.nodeid} uses the Docker cluster: mark its module docker")
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=_rank)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove the containers of a process that was killed."""
    if _shares_out(session.config):
        DockerProject().remove_left_over()


def _shares_out(config: pytest.Config) -> bool:
    return bool(config.getoption("numprocesses", None)) and "PYTEST_XDIST_WORKER" not in os.environ


def _rank(item: pytest.Item) -> int:
    room = item.path.relative_to(CHECKOUT / "tests").parts[0]
    if is_on_docker(item.path):
        return -1
    return _ORDER.index(room) if room in _ORDER else len(_ORDER)
