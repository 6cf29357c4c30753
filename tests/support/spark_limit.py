"""Runs a test on Spark again if Spark gave up its own Python worker.

Spark waits ten seconds for a worker to start, and no setting changes that (PythonWorkerFactory). A busy
machine needs longer now and then. Nothing else is run again.

A test that its time-out ends leaves an answer of the JVM unread, and all later tests of the session fail: on
a busy machine starting Spark takes minutes.
"""

import pytest

_SECONDS = 900
_GAVE_UP = "Python worker failed to connect back"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests on Spark."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.flaky(reruns=2, only_rerun=[_GAVE_UP]))
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(_SECONDS))
