"""Runs a test on Spark again if Spark gave up its own Python worker.

Spark waits ten seconds for a worker to start, and no setting changes that (PythonWorkerFactory). A busy
machine needs longer now and then. Nothing else is run again.
"""

import pytest

GAVE_UP = "Python worker failed to connect back"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests on Spark."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.flaky(reruns=2, only_rerun=[GAVE_UP]))
